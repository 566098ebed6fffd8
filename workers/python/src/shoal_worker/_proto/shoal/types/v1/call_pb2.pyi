from shoal_worker._proto.shoal.types.v1 import rpc_pb2 as _rpc_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_REPEATABLE: _ClassVar[Durability]
    DURABILITY_JOURNALED: _ClassVar[Durability]

class LogLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_LEVEL_UNSPECIFIED: _ClassVar[LogLevel]
    LOG_LEVEL_DEBUG: _ClassVar[LogLevel]
    LOG_LEVEL_INFO: _ClassVar[LogLevel]
    LOG_LEVEL_NOTICE: _ClassVar[LogLevel]
    LOG_LEVEL_WARNING: _ClassVar[LogLevel]
    LOG_LEVEL_ERROR: _ClassVar[LogLevel]
    LOG_LEVEL_CRITICAL: _ClassVar[LogLevel]
    LOG_LEVEL_ALERT: _ClassVar[LogLevel]
    LOG_LEVEL_EMERGENCY: _ClassVar[LogLevel]
DURABILITY_UNSPECIFIED: Durability
DURABILITY_REPEATABLE: Durability
DURABILITY_JOURNALED: Durability
LOG_LEVEL_UNSPECIFIED: LogLevel
LOG_LEVEL_DEBUG: LogLevel
LOG_LEVEL_INFO: LogLevel
LOG_LEVEL_NOTICE: LogLevel
LOG_LEVEL_WARNING: LogLevel
LOG_LEVEL_ERROR: LogLevel
LOG_LEVEL_CRITICAL: LogLevel
LOG_LEVEL_ALERT: LogLevel
LOG_LEVEL_EMERGENCY: LogLevel

class Call(_message.Message):
    __slots__ = ("id", "method", "params", "caller", "progress_token", "log_level", "timeout_ms", "durability", "traceparent", "tracestate", "worker", "ledger", "attach_only", "epoch")
    ID_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    ATTACH_ONLY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    method: str
    params: bytes
    caller: Caller
    progress_token: bytes
    log_level: LogLevel
    timeout_ms: int
    durability: Durability
    traceparent: str
    tracestate: str
    worker: str
    ledger: Ledger
    attach_only: bool
    epoch: int
    def __init__(self, id: _Optional[bytes] = ..., method: _Optional[str] = ..., params: _Optional[bytes] = ..., caller: _Optional[_Union[Caller, _Mapping]] = ..., progress_token: _Optional[bytes] = ..., log_level: _Optional[_Union[LogLevel, str]] = ..., timeout_ms: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ..., worker: _Optional[str] = ..., ledger: _Optional[_Union[Ledger, _Mapping]] = ..., attach_only: bool = ..., epoch: _Optional[int] = ...) -> None: ...

class Ledger(_message.Message):
    __slots__ = ("incarnation", "number")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    number: int
    def __init__(self, incarnation: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ("principal", "session", "revision", "client_info", "capabilities", "headers")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CLIENT_INFO_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    principal: str
    session: str
    revision: str
    client_info: bytes
    capabilities: bytes
    headers: _containers.RepeatedCompositeFieldContainer[Header]
    def __init__(self, principal: _Optional[str] = ..., session: _Optional[str] = ..., revision: _Optional[str] = ..., client_info: _Optional[bytes] = ..., capabilities: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[Header, _Mapping]]] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("parent", "state")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    parent: str
    state: str
    def __init__(self, parent: _Optional[str] = ..., state: _Optional[str] = ...) -> None: ...

class CallOutcome(_message.Message):
    __slots__ = ("result", "error", "failure")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    error: _rpc_pb2.RpcError
    failure: CallFailure
    def __init__(self, result: _Optional[bytes] = ..., error: _Optional[_Union[_rpc_pb2.RpcError, _Mapping]] = ..., failure: _Optional[_Union[CallFailure, _Mapping]] = ...) -> None: ...

class CallFailure(_message.Message):
    __slots__ = ("not_executed", "overloaded", "outcome_unknown", "deadline_exceeded", "cancelled", "superseded")
    class NotExecuted(_message.Message):
        __slots__ = ("reason",)
        REASON_FIELD_NUMBER: _ClassVar[int]
        reason: str
        def __init__(self, reason: _Optional[str] = ...) -> None: ...
    class Overloaded(_message.Message):
        __slots__ = ("reason", "retry_after_ms")
        REASON_FIELD_NUMBER: _ClassVar[int]
        RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
        reason: str
        retry_after_ms: int
        def __init__(self, reason: _Optional[str] = ..., retry_after_ms: _Optional[int] = ...) -> None: ...
    class OutcomeUnknown(_message.Message):
        __slots__ = ("reason",)
        REASON_FIELD_NUMBER: _ClassVar[int]
        reason: str
        def __init__(self, reason: _Optional[str] = ...) -> None: ...
    class DeadlineExceeded(_message.Message):
        __slots__ = ("limit_ms",)
        LIMIT_MS_FIELD_NUMBER: _ClassVar[int]
        limit_ms: int
        def __init__(self, limit_ms: _Optional[int] = ...) -> None: ...
    class Cancelled(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Superseded(_message.Message):
        __slots__ = ("epoch",)
        EPOCH_FIELD_NUMBER: _ClassVar[int]
        epoch: int
        def __init__(self, epoch: _Optional[int] = ...) -> None: ...
    NOT_EXECUTED_FIELD_NUMBER: _ClassVar[int]
    OVERLOADED_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_EXCEEDED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_FIELD_NUMBER: _ClassVar[int]
    not_executed: CallFailure.NotExecuted
    overloaded: CallFailure.Overloaded
    outcome_unknown: CallFailure.OutcomeUnknown
    deadline_exceeded: CallFailure.DeadlineExceeded
    cancelled: CallFailure.Cancelled
    superseded: CallFailure.Superseded
    def __init__(self, not_executed: _Optional[_Union[CallFailure.NotExecuted, _Mapping]] = ..., overloaded: _Optional[_Union[CallFailure.Overloaded, _Mapping]] = ..., outcome_unknown: _Optional[_Union[CallFailure.OutcomeUnknown, _Mapping]] = ..., deadline_exceeded: _Optional[_Union[CallFailure.DeadlineExceeded, _Mapping]] = ..., cancelled: _Optional[_Union[CallFailure.Cancelled, _Mapping]] = ..., superseded: _Optional[_Union[CallFailure.Superseded, _Mapping]] = ...) -> None: ...
