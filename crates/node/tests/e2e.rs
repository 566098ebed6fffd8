//! Tests the real binary from the outside: sockets, standard streams, signals.
#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "e2e/approval.rs"]
mod approval;
#[path = "e2e/audit.rs"]
mod audit;
#[path = "e2e/auth.rs"]
mod auth;
#[path = "e2e/call.rs"]
mod call;
#[path = "e2e/certificate.rs"]
mod certificate;
#[path = "e2e/client.rs"]
mod client;
#[path = "e2e/command.rs"]
mod command;
#[path = "e2e/config_check.rs"]
mod config_check;
#[path = "e2e/console.rs"]
mod console;
#[path = "e2e/descriptors.rs"]
mod descriptors;
#[path = "e2e/extensions.rs"]
mod extensions;
#[path = "e2e/granted.rs"]
mod granted;
#[path = "e2e/install.rs"]
mod install;
#[path = "e2e/legacy_tasks.rs"]
mod legacy_tasks;
#[path = "e2e/made_certificates.rs"]
mod made_certificates;
#[path = "e2e/narration.rs"]
mod narration;
#[path = "e2e/oauth.rs"]
mod oauth;
#[path = "e2e/odd_requests.rs"]
mod odd_requests;
#[path = "e2e/one_text.rs"]
mod one_text;
#[path = "e2e/openapi.rs"]
mod openapi;
#[path = "e2e/policy.rs"]
mod policy;
#[path = "e2e/process.rs"]
mod process;
#[path = "e2e/quota_places.rs"]
mod quota_places;
#[path = "e2e/quotas.rs"]
mod quotas;
#[path = "e2e/reload.rs"]
mod reload;
#[path = "e2e/remote.rs"]
mod remote;
#[path = "e2e/serve.rs"]
mod serve;
#[path = "e2e/server_tasks.rs"]
mod server_tasks;
#[path = "e2e/service_manager.rs"]
mod service_manager;
#[path = "e2e/shutdown.rs"]
mod shutdown;
#[path = "e2e/sse_bytes.rs"]
mod sse_bytes;
#[path = "e2e/stdio.rs"]
mod stdio;
#[path = "e2e/store_away.rs"]
mod store_away;
#[path = "e2e/tasks.rs"]
mod tasks;
#[path = "e2e/telemetry.rs"]
mod telemetry;
#[path = "e2e/terminal.rs"]
mod terminal;
#[path = "e2e/upstream.rs"]
mod upstream;
#[path = "e2e/websocket.rs"]
mod websocket;
#[path = "e2e/worker_check.rs"]
mod worker_check;
