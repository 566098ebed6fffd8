from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Versions(_message.Message):
    __slots__ = ("lowest", "highest")
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    lowest: int
    highest: int
    def __init__(self, lowest: _Optional[int] = ..., highest: _Optional[int] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("frame_bytes", "credit_bytes")
    FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    frame_bytes: int
    credit_bytes: int
    def __init__(self, frame_bytes: _Optional[int] = ..., credit_bytes: _Optional[int] = ...) -> None: ...

class Fragment(_message.Message):
    __slots__ = ("flight", "data", "last")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    flight: int
    data: bytes
    last: bool
    def __init__(self, flight: _Optional[int] = ..., data: _Optional[bytes] = ..., last: bool = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("flight", "bytes")
    FLIGHT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    flight: int
    bytes: int
    def __init__(self, flight: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("nonce",)
    NONCE_FIELD_NUMBER: _ClassVar[int]
    nonce: int
    def __init__(self, nonce: _Optional[int] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("nonce", "clock_us")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    CLOCK_US_FIELD_NUMBER: _ClassVar[int]
    nonce: int
    clock_us: int
    def __init__(self, nonce: _Optional[int] = ..., clock_us: _Optional[int] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "address", "session", "edge", "draining", "sessions", "in_flight", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    session: bool
    edge: bool
    draining: bool
    sessions: int
    in_flight: int
    version: str
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ..., session: bool = ..., edge: bool = ..., draining: bool = ..., sessions: _Optional[int] = ..., in_flight: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...
