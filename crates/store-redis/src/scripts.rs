use std::sync::Arc;

use redis::{Arg, Cmd, Script as Sha};

use crate::config::RedisConfig;
use crate::millis::millis;

pub(crate) struct Script {
    source: String,
    sha: String,
}

impl Script {
    pub(crate) fn on(&self, key: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.sha).arg(1).arg(key);
        command
    }

    /// The server knows the script afterwards.
    pub(crate) fn in_full(&self, command: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(&self.source);
        for arg in command.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                full.arg(arg);
            }
        }
        full
    }
}

pub(crate) struct RoomScript {
    pub(crate) plain: Arc<Script>,
    pub(crate) settled: Arc<Script>,
}

pub(crate) struct Scripts {
    pub(crate) create: Arc<Script>,
    pub(crate) claim: Arc<Script>,
    pub(crate) restore_claim: Arc<Script>,
    pub(crate) save: Arc<Script>,
    pub(crate) remove: Arc<Script>,
    pub(crate) append: RoomScript,
    pub(crate) read: Arc<Script>,
    pub(crate) oldest: Arc<Script>,
    pub(crate) begin: RoomScript,
    /// Journals calls that already run.
    pub(crate) begin_running: RoomScript,
    pub(crate) rebind: Arc<Script>,
    pub(crate) restore_stream: Arc<Script>,
    pub(crate) renew_lease: Arc<Script>,
    pub(crate) contest_lease: Arc<Script>,
    pub(crate) announce: Arc<Script>,
    pub(crate) settle_names: Arc<Script>,
    pub(crate) nodes: Arc<Script>,
    pub(crate) take_cells: Arc<Script>,
    pub(crate) give_cells_back: Arc<Script>,
}

/// Begins scripts for new work, which Redis refuses when it is full.
const ADMITS: &str = "#!lua";
/// Begins scripts for admitted work, which Redis runs even when it is full.
const SERVES: &str = "#!lua flags=allow-oom";
const READS: &str = "#!lua flags=no-writes";

const COMMON: &str = include_str!("lua/common.lua");
const STREAMS: &str = include_str!("lua/streams.lua");
const IDLE: &str = include_str!("lua/idle.lua");
const SETTLE: &str = include_str!("lua/settle.lua");

/// In bytes.
const MORE_OF_APPEND: &str = "local MORE = 0\nfor i = 6, #ARGV do\n  MORE = MORE + #ARGV[i]\nend";
const MORE_OF_BEGIN: &str = "local MORE = 1";

fn script(flags: &str, parts: &[&str]) -> Arc<Script> {
    let source = format!("{flags}\n{}", parts.join("\n"));
    let sha = Sha::new(&source).get_hash().to_owned();
    Arc::new(Script { source, sha })
}

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("lua/", $name, ".lua"))
    };
}

impl Scripts {
    /// The scripts contain the limits, because arguments cost as much as fields. Limits are strings, which Redis
    /// accepts faster than numbers.
    pub(crate) fn new(config: &RedisConfig) -> Self {
        let limits = format!(
            "local MOST_BYTES, MOST_EVENTS, RETENTION = {}, {}, '{}'",
            config.streams.bytes_per_session,
            config.streams.events_per_stream,
            millis(config.streams.retention.get()),
        );
        let room = |flags, more, step| RoomScript {
            plain: script(flags, &[&limits, COMMON, more, step]),
            settled: script(flags, &[&limits, COMMON, STREAMS, more, SETTLE, step]),
        };
        Self {
            create: script(ADMITS, &[COMMON, STREAMS, lua!("create")]),
            claim: script(SERVES, &[COMMON, STREAMS, lua!("claim")]),
            restore_claim: script(SERVES, &[COMMON, STREAMS, IDLE, lua!("restore_claim")]),
            save: script(SERVES, &[COMMON, STREAMS, IDLE, lua!("save")]),
            remove: script(SERVES, &[COMMON, STREAMS, lua!("remove")]),
            append: room(SERVES, MORE_OF_APPEND, lua!("append")),
            read: script(READS, &[COMMON, STREAMS, lua!("read")]),
            oldest: script(READS, &[COMMON, STREAMS, lua!("oldest")]),
            begin: room(ADMITS, MORE_OF_BEGIN, lua!("begin")),
            begin_running: room(SERVES, MORE_OF_BEGIN, lua!("begin")),
            rebind: script(SERVES, &[COMMON, lua!("rebind")]),
            restore_stream: script(SERVES, &[COMMON, STREAMS, lua!("restore_stream")]),
            renew_lease: script(SERVES, &[lua!("renew_lease")]),
            contest_lease: script(SERVES, &[lua!("contest_lease")]),
            announce: script(SERVES, &[lua!("announce")]),
            nodes: script(SERVES, &[lua!("nodes")]),
            settle_names: script(SERVES, &[lua!("settle_names")]),
            take_cells: script(ADMITS, &[lua!("take_cells")]),
            give_cells_back: script(SERVES, &[lua!("give_cells_back")]),
        }
    }
}
