use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// One injected fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deed {
    /// The fault, such as [`Deed::KILLED`].
    pub what: &'static str,
    /// The member or the connection, or `redis`.
    pub victim: String,
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

impl Deed {
    /// A process was killed and started again.
    pub const KILLED: &'static str = "killed";
    /// Redis was killed and came back empty.
    pub const WIPED: &'static str = "killed and wiped";
    /// Writes to Redis were lost, or may have been.
    pub const LOST_WRITES: &'static str = "lost writes";
    /// A worker had little capacity and refused calls.
    pub const REFUSED: &'static str = "refused calls";

    pub(super) fn new(what: &'static str, victim: impl Into<String>) -> Self {
        let victim = victim.into();
        Self { what, victim }
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Deed { what, victim }) in self.deeds.iter().enumerate() {
            let and = if at == 0 { "" } else { " and " };
            // The rows of a report are of roles, such as `edge` for `edge-2`.
            match victim.rsplit_once('-') {
                Some((role, number)) if number.parse::<u32>().is_ok() => {
                    write!(out, "{and}{role} {what}")?;
                }
                _ => write!(out, "{and}{what}")?,
            }
        }
        Ok(())
    }
}
