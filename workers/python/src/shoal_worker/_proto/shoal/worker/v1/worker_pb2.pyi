from shoal_worker._proto.shoal.types.v1 import call_pb2 as _call_pb2
from shoal_worker._proto.shoal.types.v1 import link_pb2 as _link_pb2
from shoal_worker._proto.shoal.types.v1 import rpc_pb2 as _rpc_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerFrame(_message.Message):
    __slots__ = ("hello", "announce", "load", "accepted", "refused", "event", "lost", "answer_taken", "subscribed", "resource_updated", "goodbye", "batch", "fragment", "ping", "pong", "close", "own_lists")
    class Batch(_message.Message):
        __slots__ = ("frames",)
        FRAMES_FIELD_NUMBER: _ClassVar[int]
        frames: _containers.RepeatedCompositeFieldContainer[WorkerFrame]
        def __init__(self, frames: _Optional[_Iterable[_Union[WorkerFrame, _Mapping]]] = ...) -> None: ...
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    ANSWER_TAKEN_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_UPDATED_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    OWN_LISTS_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    announce: Announce
    load: Load
    accepted: Accepted
    refused: Refused
    event: Event
    lost: Lost
    answer_taken: AnswerTaken
    subscribed: Subscribed
    resource_updated: ResourceUpdated
    goodbye: Goodbye
    batch: WorkerFrame.Batch
    fragment: _link_pb2.Fragment
    ping: _link_pb2.Ping
    pong: _link_pb2.Pong
    close: _link_pb2.Close
    own_lists: OwnLists
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., announce: _Optional[_Union[Announce, _Mapping]] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., accepted: _Optional[_Union[Accepted, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., lost: _Optional[_Union[Lost, _Mapping]] = ..., answer_taken: _Optional[_Union[AnswerTaken, _Mapping]] = ..., subscribed: _Optional[_Union[Subscribed, _Mapping]] = ..., resource_updated: _Optional[_Union[ResourceUpdated, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ..., batch: _Optional[_Union[WorkerFrame.Batch, _Mapping]] = ..., fragment: _Optional[_Union[_link_pb2.Fragment, _Mapping]] = ..., ping: _Optional[_Union[_link_pb2.Ping, _Mapping]] = ..., pong: _Optional[_Union[_link_pb2.Pong, _Mapping]] = ..., close: _Optional[_Union[_link_pb2.Close, _Mapping]] = ..., own_lists: _Optional[_Union[OwnLists, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("versions", "worker", "incarnation", "limits", "ledger", "presence")
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    versions: _link_pb2.Versions
    worker: str
    incarnation: int
    limits: _link_pb2.Limits
    ledger: int
    presence: Presence
    def __init__(self, versions: _Optional[_Union[_link_pb2.Versions, _Mapping]] = ..., worker: _Optional[str] = ..., incarnation: _Optional[int] = ..., limits: _Optional[_Union[_link_pb2.Limits, _Mapping]] = ..., ledger: _Optional[int] = ..., presence: _Optional[_Union[Presence, _Mapping]] = ...) -> None: ...

class Presence(_message.Message):
    __slots__ = ("port", "id")
    PORT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    port: int
    id: int
    def __init__(self, port: _Optional[int] = ..., id: _Optional[int] = ...) -> None: ...

class Announce(_message.Message):
    __slots__ = ("pool", "catalog", "detail", "draining")
    POOL_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    pool: str
    catalog: Catalog
    detail: str
    draining: bool
    def __init__(self, pool: _Optional[str] = ..., catalog: _Optional[_Union[Catalog, _Mapping]] = ..., detail: _Optional[str] = ..., draining: bool = ...) -> None: ...

class Catalog(_message.Message):
    __slots__ = ("server_info", "instructions", "capabilities", "tools", "resources", "resource_templates", "prompts", "tools_generation", "resources_generation", "prompts_generation", "tools_ttl_ms", "resources_ttl_ms", "resource_templates_ttl_ms", "prompts_ttl_ms", "headers", "lists", "left_out", "cut")
    class Lists(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LISTS_UNSPECIFIED: _ClassVar[Catalog.Lists]
        LISTS_PRINCIPAL: _ClassVar[Catalog.Lists]
    LISTS_UNSPECIFIED: Catalog.Lists
    LISTS_PRINCIPAL: Catalog.Lists
    SERVER_INFO_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_FIELD_NUMBER: _ClassVar[int]
    TOOLS_GENERATION_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_GENERATION_FIELD_NUMBER: _ClassVar[int]
    TOOLS_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TEMPLATES_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    PROMPTS_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    LISTS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    server_info: bytes
    instructions: str
    capabilities: bytes
    tools: _containers.RepeatedScalarFieldContainer[bytes]
    resources: _containers.RepeatedScalarFieldContainer[bytes]
    resource_templates: _containers.RepeatedScalarFieldContainer[bytes]
    prompts: _containers.RepeatedScalarFieldContainer[bytes]
    tools_generation: int
    resources_generation: int
    prompts_generation: int
    tools_ttl_ms: int
    resources_ttl_ms: int
    resource_templates_ttl_ms: int
    prompts_ttl_ms: int
    headers: _containers.RepeatedScalarFieldContainer[str]
    lists: Catalog.Lists
    left_out: _containers.RepeatedScalarFieldContainer[str]
    cut: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, server_info: _Optional[bytes] = ..., instructions: _Optional[str] = ..., capabilities: _Optional[bytes] = ..., tools: _Optional[_Iterable[bytes]] = ..., resources: _Optional[_Iterable[bytes]] = ..., resource_templates: _Optional[_Iterable[bytes]] = ..., prompts: _Optional[_Iterable[bytes]] = ..., tools_generation: _Optional[int] = ..., resources_generation: _Optional[int] = ..., prompts_generation: _Optional[int] = ..., tools_ttl_ms: _Optional[int] = ..., resources_ttl_ms: _Optional[int] = ..., resource_templates_ttl_ms: _Optional[int] = ..., prompts_ttl_ms: _Optional[int] = ..., headers: _Optional[_Iterable[str]] = ..., lists: _Optional[_Union[Catalog.Lists, str]] = ..., left_out: _Optional[_Iterable[str]] = ..., cut: _Optional[_Iterable[str]] = ...) -> None: ...

class OwnLists(_message.Message):
    __slots__ = ("owners", "whole")
    class Owner(_message.Message):
        __slots__ = ("session", "principal", "sessionless", "tools", "resources", "prompts")
        SESSION_FIELD_NUMBER: _ClassVar[int]
        PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
        SESSIONLESS_FIELD_NUMBER: _ClassVar[int]
        TOOLS_FIELD_NUMBER: _ClassVar[int]
        RESOURCES_FIELD_NUMBER: _ClassVar[int]
        PROMPTS_FIELD_NUMBER: _ClassVar[int]
        session: str
        principal: str
        sessionless: str
        tools: int
        resources: int
        prompts: int
        def __init__(self, session: _Optional[str] = ..., principal: _Optional[str] = ..., sessionless: _Optional[str] = ..., tools: _Optional[int] = ..., resources: _Optional[int] = ..., prompts: _Optional[int] = ...) -> None: ...
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    owners: _containers.RepeatedCompositeFieldContainer[OwnLists.Owner]
    whole: bool
    def __init__(self, owners: _Optional[_Iterable[_Union[OwnLists.Owner, _Mapping]]] = ..., whole: bool = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("running", "queued", "capacity", "ledger")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    running: int
    queued: int
    capacity: int
    ledger: int
    def __init__(self, running: _Optional[int] = ..., queued: _Optional[int] = ..., capacity: _Optional[int] = ..., ledger: _Optional[int] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("flight", "reader")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    flight: int
    reader: int
    def __init__(self, flight: _Optional[int] = ..., reader: _Optional[int] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("flight", "failure")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    flight: int
    failure: _call_pb2.CallFailure
    def __init__(self, flight: _Optional[int] = ..., failure: _Optional[_Union[_call_pb2.CallFailure, _Mapping]] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("flight", "sequence", "notification", "ask", "close_stream", "finished", "state", "withdrawn", "reader")
    class Notification(_message.Message):
        __slots__ = ("method", "params")
        METHOD_FIELD_NUMBER: _ClassVar[int]
        PARAMS_FIELD_NUMBER: _ClassVar[int]
        method: str
        params: bytes
        def __init__(self, method: _Optional[str] = ..., params: _Optional[bytes] = ...) -> None: ...
    class Ask(_message.Message):
        __slots__ = ("ask", "method", "params")
        ASK_FIELD_NUMBER: _ClassVar[int]
        METHOD_FIELD_NUMBER: _ClassVar[int]
        PARAMS_FIELD_NUMBER: _ClassVar[int]
        ask: int
        method: str
        params: bytes
        def __init__(self, ask: _Optional[int] = ..., method: _Optional[str] = ..., params: _Optional[bytes] = ...) -> None: ...
    class Withdrawn(_message.Message):
        __slots__ = ("ask",)
        ASK_FIELD_NUMBER: _ClassVar[int]
        ask: int
        def __init__(self, ask: _Optional[int] = ...) -> None: ...
    class State(_message.Message):
        __slots__ = ("ask", "get", "set", "keys")
        class Get(_message.Message):
            __slots__ = ("key",)
            KEY_FIELD_NUMBER: _ClassVar[int]
            key: str
            def __init__(self, key: _Optional[str] = ...) -> None: ...
        class Set(_message.Message):
            __slots__ = ("key", "value", "writing")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            WRITING_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: bytes
            writing: int
            def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ..., writing: _Optional[int] = ...) -> None: ...
        class Keys(_message.Message):
            __slots__ = ()
            def __init__(self) -> None: ...
        ASK_FIELD_NUMBER: _ClassVar[int]
        GET_FIELD_NUMBER: _ClassVar[int]
        SET_FIELD_NUMBER: _ClassVar[int]
        KEYS_FIELD_NUMBER: _ClassVar[int]
        ask: int
        get: Event.State.Get
        set: Event.State.Set
        keys: Event.State.Keys
        def __init__(self, ask: _Optional[int] = ..., get: _Optional[_Union[Event.State.Get, _Mapping]] = ..., set: _Optional[_Union[Event.State.Set, _Mapping]] = ..., keys: _Optional[_Union[Event.State.Keys, _Mapping]] = ...) -> None: ...
    class CloseStream(_message.Message):
        __slots__ = ("retry_ms",)
        RETRY_MS_FIELD_NUMBER: _ClassVar[int]
        retry_ms: int
        def __init__(self, retry_ms: _Optional[int] = ...) -> None: ...
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATION_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    CLOSE_STREAM_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    flight: int
    sequence: int
    notification: Event.Notification
    ask: Event.Ask
    close_stream: Event.CloseStream
    finished: _call_pb2.CallOutcome
    state: Event.State
    withdrawn: Event.Withdrawn
    reader: int
    def __init__(self, flight: _Optional[int] = ..., sequence: _Optional[int] = ..., notification: _Optional[_Union[Event.Notification, _Mapping]] = ..., ask: _Optional[_Union[Event.Ask, _Mapping]] = ..., close_stream: _Optional[_Union[Event.CloseStream, _Mapping]] = ..., finished: _Optional[_Union[_call_pb2.CallOutcome, _Mapping]] = ..., state: _Optional[_Union[Event.State, _Mapping]] = ..., withdrawn: _Optional[_Union[Event.Withdrawn, _Mapping]] = ..., reader: _Optional[int] = ...) -> None: ...

class Lost(_message.Message):
    __slots__ = ("flight", "replaced")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    flight: int
    replaced: bool
    def __init__(self, flight: _Optional[int] = ..., replaced: bool = ...) -> None: ...

class AnswerTaken(_message.Message):
    __slots__ = ("flight", "ask", "open")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    flight: int
    ask: int
    open: bool
    def __init__(self, flight: _Optional[int] = ..., ask: _Optional[int] = ..., open: bool = ...) -> None: ...

class Subscribed(_message.Message):
    __slots__ = ("request", "error")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request: int
    error: _rpc_pb2.RpcError
    def __init__(self, request: _Optional[int] = ..., error: _Optional[_Union[_rpc_pb2.RpcError, _Mapping]] = ...) -> None: ...

class ResourceUpdated(_message.Message):
    __slots__ = ("uri", "params")
    URI_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    uri: str
    params: bytes
    def __init__(self, uri: _Optional[str] = ..., params: _Optional[bytes] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodeFrame(_message.Message):
    __slots__ = ("welcome", "nodes", "start", "attach", "answer", "cancel", "detach", "credit", "subscribe", "unsubscribe", "end_session", "batch", "fragment", "ping", "pong", "close", "acknowledge")
    class Batch(_message.Message):
        __slots__ = ("frames",)
        FRAMES_FIELD_NUMBER: _ClassVar[int]
        frames: _containers.RepeatedCompositeFieldContainer[NodeFrame]
        def __init__(self, frames: _Optional[_Iterable[_Union[NodeFrame, _Mapping]]] = ...) -> None: ...
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    DETACH_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    UNSUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    END_SESSION_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    nodes: Nodes
    start: Start
    attach: Attach
    answer: Answer
    cancel: Cancel
    detach: Detach
    credit: _link_pb2.Credit
    subscribe: Subscribe
    unsubscribe: Unsubscribe
    end_session: EndSession
    batch: NodeFrame.Batch
    fragment: _link_pb2.Fragment
    ping: _link_pb2.Ping
    pong: _link_pb2.Pong
    close: _link_pb2.Close
    acknowledge: Acknowledge
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., nodes: _Optional[_Union[Nodes, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., attach: _Optional[_Union[Attach, _Mapping]] = ..., answer: _Optional[_Union[Answer, _Mapping]] = ..., cancel: _Optional[_Union[Cancel, _Mapping]] = ..., detach: _Optional[_Union[Detach, _Mapping]] = ..., credit: _Optional[_Union[_link_pb2.Credit, _Mapping]] = ..., subscribe: _Optional[_Union[Subscribe, _Mapping]] = ..., unsubscribe: _Optional[_Union[Unsubscribe, _Mapping]] = ..., end_session: _Optional[_Union[EndSession, _Mapping]] = ..., batch: _Optional[_Union[NodeFrame.Batch, _Mapping]] = ..., fragment: _Optional[_Union[_link_pb2.Fragment, _Mapping]] = ..., ping: _Optional[_Union[_link_pb2.Ping, _Mapping]] = ..., pong: _Optional[_Union[_link_pb2.Pong, _Mapping]] = ..., close: _Optional[_Union[_link_pb2.Close, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("version", "node", "memory", "nodes", "limits")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    version: int
    node: str
    memory: int
    nodes: _containers.RepeatedCompositeFieldContainer[_link_pb2.Node]
    limits: _link_pb2.Limits
    def __init__(self, version: _Optional[int] = ..., node: _Optional[str] = ..., memory: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[_link_pb2.Node, _Mapping]]] = ..., limits: _Optional[_Union[_link_pb2.Limits, _Mapping]] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[_link_pb2.Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[_link_pb2.Node, _Mapping]]] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("flight", "call")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    flight: int
    call: _call_pb2.Call
    def __init__(self, flight: _Optional[int] = ..., call: _Optional[_Union[_call_pb2.Call, _Mapping]] = ...) -> None: ...

class Attach(_message.Message):
    __slots__ = ("flight", "call", "after", "trace", "reader", "epoch")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    flight: int
    call: bytes
    after: int
    trace: _call_pb2.Trace
    reader: int
    epoch: int
    def __init__(self, flight: _Optional[int] = ..., call: _Optional[bytes] = ..., after: _Optional[int] = ..., trace: _Optional[_Union[_call_pb2.Trace, _Mapping]] = ..., reader: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("flight", "ask", "outcome")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    flight: int
    ask: int
    outcome: _rpc_pb2.Outcome
    def __init__(self, flight: _Optional[int] = ..., ask: _Optional[int] = ..., outcome: _Optional[_Union[_rpc_pb2.Outcome, _Mapping]] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("flight", "reason")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    flight: int
    reason: str
    def __init__(self, flight: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Detach(_message.Message):
    __slots__ = ("flight", "steering")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    STEERING_FIELD_NUMBER: _ClassVar[int]
    flight: int
    steering: bool
    def __init__(self, flight: _Optional[int] = ..., steering: bool = ...) -> None: ...

class Subscribe(_message.Message):
    __slots__ = ("request", "uri")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    request: int
    uri: str
    def __init__(self, request: _Optional[int] = ..., uri: _Optional[str] = ...) -> None: ...

class Unsubscribe(_message.Message):
    __slots__ = ("uri",)
    URI_FIELD_NUMBER: _ClassVar[int]
    uri: str
    def __init__(self, uri: _Optional[str] = ...) -> None: ...

class Acknowledge(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, calls: _Optional[_Iterable[bytes]] = ...) -> None: ...

class EndSession(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: str
    def __init__(self, session: _Optional[str] = ...) -> None: ...
