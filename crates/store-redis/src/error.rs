use redis::{ErrorKind, RedisError, ServerErrorKind};
use shoal_ports::StoreError;

/// Why the store cannot be used. The texts contain no passwords.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The configuration is wrong.
    #[error("{0}")]
    Config(String),
    /// Redis is unreachable or refuses the login.
    #[error("{0}")]
    Unreachable(String),
}

const LONGEST: usize = 160;

pub(crate) struct CommandFailure {
    pub(crate) error: StoreError,
    pub(crate) connection: Damage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    None,
    /// A server may be gone: check whether any answers.
    Suspect,
    Broken,
}

/// Decides what a failure means for the caller and the connection. A `cluster` connection maintains its servers itself.
pub(crate) fn judge(error: &RedisError, cluster: bool) -> CommandFailure {
    let unavailable = |connection| CommandFailure {
        error: StoreError::Unavailable(text(error)),
        connection,
    };
    if error.code() == Some("OOM") {
        return CommandFailure {
            error: StoreError::Full("Redis has reached its maxmemory"),
            connection: Damage::None,
        };
    }
    match error.kind() {
        ErrorKind::ClusterConnectionNotFound => unavailable(Damage::Broken),
        ErrorKind::Io if cluster => unavailable(Damage::Suspect),
        _ if cluster => unavailable(Damage::None),
        // The server is a former master, so look for the new one.
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown) => {
            unavailable(Damage::Broken)
        }
        ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => CommandFailure {
            error: StoreError::Unavailable(
                "this is a Redis Cluster: its URL must begin with redis+cluster://".to_owned(),
            ),
            connection: Damage::None,
        },
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::AuthenticationFailed => {
            unavailable(Damage::Broken)
        }
        _ => unavailable(Damage::None),
    }
}

/// Redis and its client library keep passwords out of the text.
pub(crate) fn text(error: &RedisError) -> String {
    let text = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => error.to_string(),
    };
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;
    use shoal_ports::StoreError;

    use super::{Damage, judge};

    fn said(line: &str) -> redis::RedisError {
        let reply = parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("a reply");
        reply.extract_error().expect_err("an error")
    }

    #[test]
    fn a_full_redis_is_full_and_a_former_master_is_left() {
        let full = judge(&said("OOM command not allowed"), false);
        assert!(matches!(full.error, StoreError::Full(_)));
        for (line, damage) in [
            (
                "READONLY You can't write against a read only replica.",
                Damage::Broken,
            ),
            ("MASTERDOWN Link with MASTER is down", Damage::Broken),
            (
                "LOADING Redis is loading the dataset in memory",
                Damage::None,
            ),
            ("CLUSTERDOWN The cluster is down", Damage::None),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Damage::None,
            ),
            ("NOPERM User has no permissions", Damage::None),
            ("MISCONF Errors writing to the AOF file", Damage::None),
        ] {
            let failure = judge(&said(line), false);
            assert_eq!(failure.connection, damage, "{line}");
            let StoreError::Unavailable(text) = failure.error else {
                panic!("{line}");
            };
            assert!(line.starts_with(&text), "{text}");
        }
    }
}
