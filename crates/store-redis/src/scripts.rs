//! The atomic steps as scripts that Redis runs, and the commands that run them.

use std::sync::LazyLock;

use redis::{Arg, Cmd, Script as Sha};

/// A script with the flags that say when Redis may run it.
pub(crate) struct Script {
    source: String,
    sha: String,
}

impl Script {
    /// The command that runs the script, known by its hash, on the one key that it is given.
    pub(crate) fn on(&self, key: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.sha).arg(1).arg(key);
        command
    }

    /// The same command for a server that does not know the script yet; it will know it then.
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

/// A step that needs room in its session's log.
pub(crate) struct RoomScript {
    /// Refused with `Full` where there is none.
    pub(crate) plain: Script,
    /// Settles the session's accounts first, so that what is over makes room.
    pub(crate) settled: Script,
}

/// Every script.
pub(crate) struct Scripts {
    pub(crate) create: Script,
    pub(crate) claim: Script,
    pub(crate) restore_claim: Script,
    pub(crate) save: Script,
    pub(crate) remove: Script,
    pub(crate) append: RoomScript,
    pub(crate) read: Script,
    pub(crate) begin: RoomScript,
    /// The same, of calls that run already.
    pub(crate) begin_running: RoomScript,
    pub(crate) rebind: Script,
    pub(crate) restore_stream: Script,
    pub(crate) renew_lease: Script,
    pub(crate) contest_lease: Script,
    pub(crate) announce: Script,
    pub(crate) nodes: Script,
}

/// Refused when Redis is full: what admits something new.
const ADMITS: &str = "#!lua";
/// Run even then: what serves, or ends, what was admitted.
const SERVES: &str = "#!lua flags=allow-oom";
/// Writes nothing.
const READS: &str = "#!lua flags=no-writes";

const COMMON: &str = include_str!("lua/common.lua");
const STREAMS: &str = include_str!("lua/streams.lua");
const IDLE: &str = include_str!("lua/idle.lua");
const SETTLE: &str = include_str!("lua/settle.lua");

fn script(flags: &str, parts: &[&str]) -> Script {
    let source = format!("{flags}\n{}", parts.join("\n"));
    let sha = Sha::new(&source).get_hash().to_owned();
    Script { source, sha }
}

fn room_script(flags: &str, step: &str) -> RoomScript {
    RoomScript {
        plain: script(flags, &[COMMON, step]),
        settled: script(flags, &[COMMON, STREAMS, SETTLE, step]),
    }
}

macro_rules! lua {
    ($name:literal) => {
        include_str!(concat!("lua/", $name, ".lua"))
    };
}

pub(crate) static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    create: script(ADMITS, &[COMMON, STREAMS, lua!("create")]),
    claim: script(SERVES, &[COMMON, STREAMS, lua!("claim")]),
    restore_claim: script(SERVES, &[COMMON, STREAMS, IDLE, lua!("restore_claim")]),
    save: script(SERVES, &[COMMON, STREAMS, IDLE, lua!("save")]),
    remove: script(SERVES, &[COMMON, STREAMS, lua!("remove")]),
    append: room_script(SERVES, lua!("append")),
    read: script(READS, &[COMMON, STREAMS, lua!("read")]),
    begin: room_script(ADMITS, lua!("begin")),
    begin_running: room_script(SERVES, lua!("begin")),
    rebind: script(SERVES, &[COMMON, lua!("rebind")]),
    restore_stream: script(SERVES, &[COMMON, STREAMS, lua!("restore_stream")]),
    renew_lease: script(SERVES, &[lua!("renew_lease")]),
    contest_lease: script(SERVES, &[lua!("contest_lease")]),
    announce: script(SERVES, &[lua!("announce")]),
    nodes: script(SERVES, &[lua!("nodes")]),
});
