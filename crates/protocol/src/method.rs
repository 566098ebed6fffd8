use crate::{Era, Revision};

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A JSON-RPC method.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $($(#[$doc])* $variant,)*
            /// A method unknown to Shoal.
            Other(Box<str>),
        }

        impl Method {
            /// Reads a method name, known or not.
            pub fn from_name(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }

            /// Returns the name in messages.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }
    };
}

methods! {
    /// `initialize`
    Initialize = "initialize",
    /// `ping`
    Ping = "ping",
    /// `server/discover`
    Discover = "server/discover",
    /// `tools/list`
    ToolsList = "tools/list",
    /// `tools/call`
    ToolsCall = "tools/call",
    /// `resources/list`
    ResourcesList = "resources/list",
    /// `resources/templates/list`
    ResourceTemplatesList = "resources/templates/list",
    /// `resources/read`
    ResourcesRead = "resources/read",
    /// `resources/subscribe`
    ResourcesSubscribe = "resources/subscribe",
    /// `resources/unsubscribe`
    ResourcesUnsubscribe = "resources/unsubscribe",
    /// `prompts/list`
    PromptsList = "prompts/list",
    /// `prompts/get`
    PromptsGet = "prompts/get",
    /// `completion/complete`
    Complete = "completion/complete",
    /// `logging/setLevel`
    SetLevel = "logging/setLevel",
    /// `subscriptions/listen`
    Listen = "subscriptions/listen",
    /// `tasks/get` (the tasks extension, and 2025-11-25)
    TasksGet = "tasks/get",
    /// `tasks/update` (the tasks extension)
    TasksUpdate = "tasks/update",
    /// `tasks/cancel` (the tasks extension, and 2025-11-25)
    TasksCancel = "tasks/cancel",
    /// `tasks/result` (2025-11-25)
    TasksResult = "tasks/result",
    /// `tasks/list` (2025-11-25)
    TasksList = "tasks/list",
    /// `sampling/createMessage` (server to client)
    CreateMessage = "sampling/createMessage",
    /// `elicitation/create` (server to client)
    Elicit = "elicitation/create",
    /// `roots/list` (server to client)
    RootsList = "roots/list",
    /// `notifications/initialized`
    Initialized = "notifications/initialized",
    /// `notifications/cancelled`
    Cancelled = "notifications/cancelled",
    /// `notifications/progress`
    Progress = "notifications/progress",
    /// `notifications/message`
    LogMessage = "notifications/message",
    /// `notifications/roots/list_changed`
    RootsListChanged = "notifications/roots/list_changed",
    /// `notifications/tools/list_changed`
    ToolsListChanged = "notifications/tools/list_changed",
    /// `notifications/prompts/list_changed`
    PromptsListChanged = "notifications/prompts/list_changed",
    /// `notifications/resources/list_changed`
    ResourcesListChanged = "notifications/resources/list_changed",
    /// `notifications/resources/updated`
    ResourceUpdated = "notifications/resources/updated",
    /// `notifications/subscriptions/acknowledged`
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged",
    /// `notifications/tasks` (the tasks extension)
    TaskChanged = "notifications/tasks",
    /// `notifications/tasks/status` (2025-11-25)
    TaskStatus = "notifications/tasks/status",
    /// `notifications/elicitation/complete` (2025-11-25)
    ElicitationComplete = "notifications/elicitation/complete",
}

/// The parameter that the header `Mcp-Name` mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// `params.name`
    Name,
    /// `params.uri`
    Uri,
    /// `params.taskId`
    TaskId,
}

impl Method {
    /// Whether clients of `revision` may send the method as a request.
    pub fn is_request_of(&self, revision: Revision) -> bool {
        match self {
            Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::ResourceTemplatesList
            | Self::ResourcesRead
            | Self::PromptsList
            | Self::PromptsGet
            | Self::Complete => true,
            Self::Initialize
            | Self::Ping
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::SetLevel => revision.era() == Era::Legacy,
            Self::Discover | Self::Listen => revision.era() == Era::Modern,
            _ => self.may_be_of_extension(),
        }
    }

    /// Whether a backend runs the method, rather than Shoal itself.
    pub fn runs_on_backend(&self) -> bool {
        matches!(
            self,
            Self::ToolsCall | Self::ResourcesRead | Self::PromptsGet | Self::Complete
        ) || self.may_be_of_extension()
    }

    /// Whether a request of the method can have effects.
    pub fn may_have_effects(&self) -> bool {
        *self == Self::ToolsCall || self.may_be_of_extension()
    }

    /// Whether the method may belong to an extension.
    pub fn may_be_of_extension(&self) -> bool {
        matches!(self, Self::Other(_))
    }

    /// Whether the method is a notification.
    pub fn is_notification(&self) -> bool {
        self.as_str().starts_with("notifications/")
    }

    /// Whether `InputRequiredResult` may answer the method (2026-07-28, MRTR, Supported Requests).
    pub fn may_require_input(&self) -> bool {
        matches!(
            self,
            Self::ToolsCall | Self::ResourcesRead | Self::PromptsGet
        )
    }

    /// Returns the parameter for `Mcp-Name`, if the method needs that header.
    pub fn named(&self) -> Option<Named> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some(Named::Name),
            Self::ResourcesRead => Some(Named::Uri),
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => Some(Named::TaskId),
            _ => None,
        }
    }

    /// Whether the method belongs to the tasks [extension](crate::task::TASKS).
    pub fn is_of_task(&self) -> bool {
        matches!(self, Self::TasksGet | Self::TasksUpdate | Self::TasksCancel)
    }
}

impl Method {
    /// Whether the method belongs to the tasks of 2025-11-25.
    pub fn is_of_legacy_task(&self) -> bool {
        matches!(
            self,
            Self::TasksGet | Self::TasksCancel | Self::TasksResult | Self::TasksList
        )
    }
}

impl Named {
    /// Returns the parameter's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Uri => "uri",
            Self::TaskId => "taskId",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Method {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Method {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_name(&String::deserialize(deserializer)?))
    }
}
