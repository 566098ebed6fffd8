//! What was done to a cluster.

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
