use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// One injected fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A member was killed and started again.
    Killed(String),
    /// A member was paused.
    Paused(String),
    /// The connection between two parts was cut.
    Cut(String),
    /// Connections were reset, this many times.
    Reset(usize),
    /// A member's messages arrived while the member was paused.
    SentLate(String),
    /// A worker had little capacity and refused this many calls.
    LittleRoom(String, u64),
    /// A member got a wrong clock.
    WrongClock(String),
    /// A member could open no file descriptors.
    NoDescriptors(String),
    /// The log of a member was not read.
    Unread(String),
    /// Redis was killed and came back with its data.
    RedisRestarted,
    /// Redis was killed and came back empty.
    Wiped,
    /// Redis had no memory or disk left.
    Full(String),
    /// A replica replaced a Redis server.
    FailedOver(String),
    /// Writes to Redis were lost, or may have been.
    LostWrites,
    /// This many clients returned at once.
    CameBack(usize),
    /// A member was restarted gracefully.
    Restarted(String),
}

/// Faults that were injected together. Times count from the run's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Injected {
    /// The faults.
    pub deeds: Vec<Deed>,
    /// When the first fault began.
    pub from: Duration,
    /// When everything worked again.
    pub until: Duration,
}

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

fn role(member: &str) -> &str {
    member.trim_end_matches(|end: char| end.is_ascii_digit() || end == '-')
}
