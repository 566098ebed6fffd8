use std::borrow::Cow;

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub(super) enum ConnectionEnd {
    Gone,
    Close(CloseCode, Cow<'static, str>),
}

impl ConnectionEnd {
    const fn close(code: CloseCode, why: &'static str) -> Self {
        Self::Close(code, Cow::Borrowed(why))
    }
}

pub(super) const AWAY: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Away,
    "this node is going away; connect again, and resume the session if you can",
);

pub(super) const MOVED: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Restart,
    "the session moves to another node; connect again after the last event",
);

pub(super) const OVER: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Normal,
    "the stream ends here: the session is over, or read elsewhere, or was read too slowly",
);

pub(super) const TOKEN_OVER: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Policy,
    "the access token is no longer valid; connect again with a new one, and resume the session if you can",
);

pub(super) const UNREAD: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Again,
    "too much waits to be read; connect again after the last event, and read faster",
);

pub(super) const BINARY: ConnectionEnd =
    ConnectionEnd::close(CloseCode::Unsupported, "send messages as text frames");

pub(super) const NOT_UTF8: ConnectionEnd =
    ConnectionEnd::close(CloseCode::Invalid, "text frames must be UTF-8");

pub(super) const NOT_TEXT: ConnectionEnd =
    ConnectionEnd::close(CloseCode::Error, "a message of the server is not UTF-8");

pub(super) const NOT_OPENED: ConnectionEnd =
    ConnectionEnd::close(CloseCode::Policy, "send initialize soon after you connect");

pub(super) const OTHERWISE: ConnectionEnd = ConnectionEnd::close(
    CloseCode::Policy,
    "the session was opened over Streamable HTTP; go on with it there",
);
