use serde_json::{Value, json};
use shoal_rpc::proto::types::v1::{Call, Caller, Durability, Ledger, LogLevel};
use uuid::Uuid;

use super::link::ProbeLink;

pub(super) const TOKEN: &str = "\"check\"";
const TIMEOUT_MS: u64 = 60_000;

impl ProbeLink {
    /// Not safe to repeat. The client has a session and all capabilities.
    pub(super) fn call(&self, tool: &str, arguments: Value) -> Call {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": { "progressToken": "check" },
        });
        let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        Call {
            id: Uuid::now_v7().as_bytes().to_vec().into(),
            method: "tools/call".to_owned(),
            params: Some(params.to_string().into()),
            caller: Some(Caller {
                principal: "worker-check".to_owned(),
                session: Some(Uuid::now_v7().to_string()),
                revision: "2025-11-25".to_owned(),
                client_info: None,
                capabilities: capabilities.to_string().into(),
                headers: Vec::new(),
            }),
            progress_token: Some(TOKEN.into()),
            log_level: LogLevel::Unspecified.into(),
            timeout_ms: TIMEOUT_MS,
            durability: Durability::Journaled.into(),
            worker: Some(self.hello.worker.clone()),
            ledger: self.ledger(),
            ..Call::default()
        }
    }

    /// Safe to repeat. The client has no session.
    pub(super) fn repeatable(&self, tool: &str, arguments: Value) -> Call {
        let mut call = self.call(tool, arguments);
        call.durability = Durability::Repeatable.into();
        call.worker = None;
        call.ledger = None;
        if let Some(caller) = &mut call.caller {
            caller.session = None;
            caller.revision = "2026-07-28".to_owned();
        }
        call
    }

    /// `long_job` reports progress in each step.
    pub(super) fn job(&self, steps: u32, interval_ms: u32) -> Call {
        let arguments = json!({ "steps": steps, "interval_ms": interval_ms });
        self.call("long_job", arguments)
    }

    pub(super) fn ledger(&self) -> Option<Ledger> {
        let known = self.load.as_ref().and_then(|load| load.ledger);
        Some(Ledger {
            incarnation: self.hello.incarnation,
            number: known.or(self.hello.ledger)?,
        })
    }
}
