//! A session's durable record: what another node needs to be the session.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shoal_ports::{CallId, Principal, SessionId, SessionTransport};
use shoal_protocol::task::TaskEnd;
use shoal_protocol::{LogLevel, RawJson, Revision};

use crate::state::Kept;

/// What is stored of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Whose session it is.
    pub(crate) principal: Principal,
    /// How its answers travel.
    pub(crate) transport: SessionTransport,
    /// When it was opened, in milliseconds since 1970; not known of one that an older release opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_at: Option<u64>,
    /// What `initialize` settled, once it has been answered.
    pub(crate) handshake: Option<Handshake>,
    /// The least severe log message that the client wants.
    pub(crate) log_level: LogLevel,
    /// URIs of the resources that the client is subscribed to.
    pub(crate) subscriptions: BTreeSet<String>,
    /// Subscribed resources whose update the client has not been told of.
    pub(crate) updated: BTreeSet<String>,
    /// The list versions that the client knows, or will from the log: what it was told in passing does
    /// not count.
    pub(crate) announced: [u64; 3],
    /// What tools keep in the session.
    #[serde(default)]
    pub(crate) kept: Kept,
    /// The tasks that its calls have become (2025-11-25), oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made_tasks: Vec<MadeTask>,
    /// The task that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskRecord>,
}

/// A task that a call of the session has become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeTask {
    /// The session that it is.
    pub(crate) task: SessionId,
    /// The delivery of the call: one that comes again finds its task by it.
    pub(crate) delivery: CallId,
    /// When it was made, in milliseconds since 1970.
    pub(crate) made_at: u64,
}

/// What is stored of a task besides its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    /// How its call has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<TaskEnd>,
    /// When, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) ended_at: u64,
}

/// What `initialize` settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handshake {
    /// The negotiated revision.
    pub(crate) revision: Revision,
    /// `Implementation` of the client.
    pub(crate) client_info: RawJson,
    /// `ClientCapabilities`.
    pub(crate) capabilities: RawJson,
}

impl Record {
    /// The record of a session that nobody has initialized.
    pub(crate) fn new(principal: Principal, transport: SessionTransport) -> Self {
        Self {
            principal,
            transport,
            opened_at: None,
            handshake: None,
            log_level: LogLevel::Info,
            subscriptions: BTreeSet::new(),
            updated: BTreeSet::new(),
            announced: [0; 3],
            kept: Kept::default(),
            made_tasks: Vec::new(),
            task: (transport == SessionTransport::Task).then(TaskRecord::default),
        }
    }

    /// The record as it is stored.
    pub(crate) fn to_bytes(&self) -> Bytes {
        RawJson::of(self).into_bytes()
    }

    /// Reads a stored record.
    ///
    /// # Errors
    /// When it was written by an incompatible version.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
