//! A session's durable record, from which another node restores it.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shoal_ports::{CallId, Principal, SessionId, SessionTransport};
use shoal_protocol::task::TaskEnd;
use shoal_protocol::{LogLevel, RawJson, Revision};

use crate::state::Kept;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) principal: Principal,
    pub(crate) transport: SessionTransport,
    /// Milliseconds since 1970. `None` in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_at: Option<u64>,
    pub(crate) handshake: Option<Handshake>,
    pub(crate) log_level: LogLevel,
    pub(crate) subscriptions: BTreeSet<String>,
    /// Resources of whose updates the client may not know.
    pub(crate) updated: BTreeSet<String>,
    /// The list versions that the client knows or will read from the log.
    pub(crate) announced: [u64; 3],
    #[serde(default)]
    pub(crate) kept: Kept,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) made_tasks: Vec<MadeTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MadeTask {
    pub(crate) task: SessionId,
    /// The delivery that made the task, by which a repeated delivery finds the task.
    pub(crate) delivery: CallId,
    /// Milliseconds since 1970.
    pub(crate) made_at: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<TaskEnd>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(crate) ended_at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handshake {
    pub(crate) revision: Revision,
    /// The client's `Implementation`. `None` for a task whose client did not send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_info: Option<RawJson>,
    pub(crate) capabilities: RawJson,
}

impl Record {
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

    pub(crate) fn to_bytes(&self) -> Bytes {
        RawJson::of(self).into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
