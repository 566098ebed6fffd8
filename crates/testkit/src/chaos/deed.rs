//! What was done to a cluster.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A member was killed, and started again.
    Killed(String),
    /// A member was stopped, and went on.
    Paused(String),
    /// Two parts could not talk.
    Cut(String),
    /// Connections were reset so many times.
    Reset(usize),
    /// What a member had sent arrived while it was stopped.
    SentLate(String),
    /// A worker had hardly any room, and refused so many calls.
    LittleRoom(String, u64),
    /// A member got another clock.
    WrongClock(String),
    /// A member could open nothing.
    NoDescriptors(String),
    /// Nobody read what a member logged.
    Unread(String),
    /// Redis was killed, and came back with its data.
    RedisRestarted,
    /// Redis was killed, and came back empty.
    Wiped,
    /// Redis had no room for more.
    Full(String),
    /// A replica took the place of a Redis.
    FailedOver(String),
    /// What was written to Redis meanwhile was lost, or may have been.
    LostWrites,
    /// So many clients came back at once.
    CameBack(usize),
    /// A member was restarted in order.
    Restarted(String),
}

/// What was done at once, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Injected {
    /// What.
    pub deeds: Vec<Deed>,
    /// Since the beginning of the run.
    pub from: Duration,
    /// When everything was as before.
    pub until: Duration,
}

/// What failed, without which of several equal parts it was.
impl fmt::Display for Injected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, deed) in self.deeds.iter().enumerate() {
            let and = if at == 0 { "" } else { " and " };
            write!(out, "{and}{deed}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed(member) => write!(out, "{} killed", role(member)),
            Self::Paused(member) => write!(out, "{} paused", role(member)),
            Self::Cut(_) => out.write_str("a connection cut"),
            Self::Reset(_) => out.write_str("connections reset"),
            Self::SentLate(member) => write!(out, "{} late", role(member)),
            Self::LittleRoom(member, _) => write!(out, "{} without room", role(member)),
            Self::WrongClock(member) => write!(out, "{} with a wrong clock", role(member)),
            Self::NoDescriptors(member) => write!(out, "{} without descriptors", role(member)),
            Self::Unread(member) => write!(out, "{} with an unread log", role(member)),
            Self::RedisRestarted => out.write_str("Redis restarted"),
            Self::Wiped => out.write_str("Redis wiped"),
            Self::Full(_) => out.write_str("Redis full"),
            Self::FailedOver(_) => out.write_str("Redis failed over"),
            Self::LostWrites => out.write_str("writes lost"),
            Self::CameBack(clients) => write!(out, "{clients} clients came back"),
            Self::Restarted(member) => write!(out, "{} restarted", role(member)),
        }
    }
}

/// The role in a member's name: `edge` of `edge-1`.
fn role(member: &str) -> &str {
    member.trim_end_matches(|end: char| end.is_ascii_digit() || end == '-')
}
