//! The attacked server, with bounds that are small enough to reach.

use std::path::Path;

use shoal_testkit::cluster::{Cluster, Member, Tools};

use crate::callers::Callers;

const MIB: usize = 1 << 20;
/// Settings of memory bounds, with their values in MiB.
const BYTES: &[(&str, usize)] = &[
    ("limits.bodies_in_flight_bytes", 32),
    ("limits.answers_waiting_bytes", 64),
    ("limits.stored_bytes", 64),
    ("streams.bytes", 64),
];
/// Memory for buffers, stacks and the allocator, in addition to twice the bounds in `BYTES`: a text
/// exists as received and as sent.
const SLACK: usize = 96 * MIB;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    OneProcess,
    Cluster,
}

pub(crate) struct Server {
    cluster: Cluster,
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) process: String,
    pub(crate) bytes: usize,
}

impl Server {
    pub(crate) async fn start(form: Form, callers: &Callers) -> Self {
        Self::with_pools(form, callers, &[]).await
    }

    pub(crate) async fn with_pools(
        form: Form,
        callers: &Callers,
        more: &[(&str, &str, String)],
    ) -> Self {
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exhaustion/schema.py");
        let stdio = |prefix| {
            format!(
                "command = \"python3\", args = [{:?}, {prefix:?}]",
                schema.display()
            )
        };
        let pools = format!(
            "[pools.demo]\nbackend = \"demo\"\n\n\
             [pools.schema]\nbackend = {{ stdio = {{ {}, isolation = \"shared\" }} }}\n\n\
             [pools.own]\nbackend = {{ stdio = {{ {}, isolation = \"session\", processes = 4 }} }}\n",
            stdio(""),
            stdio("own_"),
        );
        let mut builder = Cluster::builder()
            .tools(Tools::Configured(pools))
            .setting("limits.requests", "512")
            .setting("limits.requests_per_principal", "128")
            .setting("limits.bodies_in_flight_bytes_per_principal", &bytes(8))
            .setting("limits.answers_waiting_bytes_per_principal", &bytes(16))
            .setting("limits.stored_bytes_per_principal", &bytes(16))
            .setting("server.write_timeout", "\"500ms\"");
        for (pool, prefix, backend) in more {
            builder = builder
                .setting(&format!("pools.{pool}.backend"), backend)
                .setting(&format!("pools.{pool}.prefix"), &format!("{prefix:?}"));
        }
        if matches!(form, Form::OneProcess) {
            builder = builder.one_process();
        }
        for (setting, value) in &callers.settings {
            builder = builder.setting(setting, value);
        }
        for (setting, mib) in BYTES {
            builder = builder.setting(setting, &bytes(*mib));
        }
        let cluster = builder.start().await.unwrap();
        Self { cluster }
    }

    pub(crate) fn url(&self) -> &str {
        // Not the balancer's URL, because the balancer has buffers of its own.
        let mut members = self.cluster.members().iter();
        members.find_map(Member::mcp_url).unwrap()
    }

    pub(crate) fn bound(&self) -> usize {
        let counted: usize = BYTES.iter().map(|(_, mib)| mib * MIB).sum();
        2 * counted + SLACK
    }

    pub(crate) async fn memory(&self) -> Vec<Memory> {
        self.status("VmRSS:").await
    }

    pub(crate) async fn most_memory(&self) -> Vec<Memory> {
        self.status("VmHWM:").await
    }

    async fn status(&self, line: &str) -> Vec<Memory> {
        let mut all = Vec::new();
        for member in self.cluster.members() {
            let pid = member.pid();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let found = status.lines().find_map(|found| found.strip_prefix(line));
            let kib = found.unwrap().trim().trim_end_matches(" kB");
            all.push(Memory {
                process: member.name().to_owned(),
                bytes: kib.parse::<usize>().unwrap() << 10,
            });
        }
        all
    }
}

fn bytes(mib: usize) -> String {
    (mib * MIB).to_string()
}
