//! The requests of a message that are counted.

use std::borrow::Cow;

use shoal_protocol::{Body, Message, Method};

/// The requests of a message, each with the tool that it calls, if quotas ask for that.
pub(super) enum Requests<'a> {
    One(Option<Tool<'a>>),
    Batch(Vec<Tool<'a>>),
}

/// The name of the tool; `None` if none is called.
type Tool<'a> = Option<Cow<'a, str>>;

impl<'a> Requests<'a> {
    /// Those of a body. Names are read once, however many quotas ask for them.
    pub(super) fn of(body: &'a Body, with_tools: bool) -> Self {
        let counted = |message: &'a Message| match message {
            Message::Request(request) if with_tools && request.method == Method::ToolsCall => {
                let params = request.params.as_ref();
                Some(params.and_then(|params| params.member_text("name")))
            }
            Message::Request(_) => Some(None),
            _ => None,
        };
        match body {
            Body::Single(message) => Self::One(counted(message)),
            Body::Batch(messages) => {
                Self::Batch(messages.iter().flatten().filter_map(counted).collect())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    /// The tools that are called.
    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        self.all().iter().filter_map(Option::as_deref)
    }

    fn all(&self) -> &[Tool<'a>] {
        match self {
            Self::One(request) => request.as_slice(),
            Self::Batch(requests) => requests,
        }
    }
}
