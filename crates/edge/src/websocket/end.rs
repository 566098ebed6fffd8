use std::borrow::Cow;

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

pub(super) enum End {
    Gone,
    Close(CloseCode, Cow<'static, str>),
}

impl End {
    const fn close(code: CloseCode, why: &'static str) -> Self {
        Self::Close(code, Cow::Borrowed(why))
    }
}

pub(super) const AWAY: End = End::close(
    CloseCode::Away,
    "this node is going away; connect again, and resume the session if you can",
);

pub(super) const MOVED: End = End::close(
    CloseCode::Restart,
    "the session moves to another node; connect again after the last event",
);

pub(super) const OVER: End = End::close(
    CloseCode::Normal,
    "the stream ends here: the session is over, or read elsewhere, or was read too slowly",
);

pub(super) const TOKEN_OVER: End = End::close(
    CloseCode::Policy,
    "the access token is no longer valid; connect again with a new one, and resume the session if you can",
);

pub(super) const UNREAD: End = End::close(
    CloseCode::Again,
    "too much waits to be read; connect again after the last event, and read faster",
);

pub(super) const BINARY: End = End::close(CloseCode::Unsupported, "send messages as text frames");

pub(super) const NOT_UTF8: End = End::close(CloseCode::Invalid, "text frames must be UTF-8");

pub(super) const NOT_TEXT: End =
    End::close(CloseCode::Error, "a message of the server is not UTF-8");

pub(super) const NOT_OPENED: End =
    End::close(CloseCode::Policy, "send initialize soon after you connect");

pub(super) const OTHERWISE: End = End::close(
    CloseCode::Policy,
    "the session was opened over Streamable HTTP; go on with it there",
);
