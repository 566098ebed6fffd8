use std::borrow::Cow;

use shoal_protocol::{Body, Message, Method};

pub(super) enum CountedRequests<'a> {
    One(Option<ToolName<'a>>),
    Batch(Vec<ToolName<'a>>),
}

type ToolName<'a> = Option<Cow<'a, str>>;

impl<'a> CountedRequests<'a> {
    /// Reads tool names once for all quotas.
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

    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        self.all().iter().filter_map(Option::as_deref)
    }

    fn all(&self) -> &[ToolName<'a>] {
        match self {
            Self::One(request) => request.as_slice(),
            Self::Batch(requests) => requests,
        }
    }
}
