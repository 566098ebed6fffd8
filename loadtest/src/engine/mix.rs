use std::fmt;
use std::str::FromStr;

use crate::mcp::Mode;
use crate::mcp::job::Job;

const PAYLOAD_BYTES: usize = 64 * 1024;

const STEPS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Echo,
    /// Echoes a text of this many bytes.
    Payload(usize),
    /// Calls `long_job`: progress notifications, then the result.
    Progress(Job),
    /// Calls `book_table`: the server asks, and the result must contain the answer.
    Elicitation,
    /// Calls the echo, which becomes a task of 2026-07-28. Not part of a mix, because other calls would become tasks too.
    Task,
    /// Calls `echo_once`, which must not be repeated, so the server journals it.
    Journaled,
    /// Calls `count_up`, which reveals lost and repeated calls.
    Count,
    /// Calls `increment_counter`, which changes the resource that listeners watch.
    Update,
}

impl Kind {
    pub(crate) fn tool(self) -> Option<&'static str> {
        match self {
            Self::Echo | Self::Payload(_) | Self::Task => None,
            Self::Progress(_) => Some("long_job"),
            Self::Elicitation => Some("book_table"),
            Self::Journaled => Some("echo_once"),
            Self::Count => Some("count_up"),
            Self::Update => Some("increment_counter"),
        }
    }

    pub(crate) fn impossible_in(self, mode: Mode) -> Option<&'static str> {
        match (self, mode) {
            (Self::Count, Mode::Modern) => {
                Some("it counts in a session, and clients of 2026-07-28 have none")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Echo => write!(out, "echo"),
            Self::Payload(bytes) => match bytes {
                bytes if bytes % (1024 * 1024) == 0 => write!(out, "payload:{}MiB", bytes >> 20),
                bytes if bytes % 1024 == 0 => write!(out, "payload:{}KiB", bytes >> 10),
                bytes => write!(out, "payload:{bytes}"),
            },
            Self::Progress(job) => write!(out, "progress:{}", job.steps),
            Self::Elicitation => write!(out, "elicitation"),
            Self::Task => write!(out, "task"),
            Self::Journaled => write!(out, "journaled"),
            Self::Count => write!(out, "count"),
            Self::Update => write!(out, "update"),
        }
    }
}

/// Weights, such as `echo=80,payload:64KiB=10,progress:10=5`.
#[derive(Debug, Clone)]
pub(crate) struct Mix(Vec<(Kind, u32)>);

impl Mix {
    pub(crate) fn of(kind: Kind) -> Self {
        Self(vec![(kind, 1)])
    }

    pub(crate) fn kinds(&self) -> impl ExactSizeIterator<Item = Kind> {
        self.0.iter().map(|(kind, _)| *kind)
    }

    pub(crate) fn pick(&self, chance: u64) -> (usize, Kind) {
        let total: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = chance % total;
        for (place, (kind, weight)) in self.0.iter().enumerate() {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return (place, *kind),
            }
        }
        unreachable!("what is left is below the sum of the weights")
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds: Vec<(Kind, u32)> = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let weight = match weight.trim().parse() {
                Ok(weight) if weight > 0 => weight,
                _ => return Err(format!("{weight:?} in {part:?} is no weight of 1 or more")),
            };
            let kind = kind(name.trim())?;
            if kinds.iter().any(|(known, _)| *known == kind) {
                return Err(format!("{kind} is there twice; give it one weight"));
            }
            kinds.push((kind, weight));
        }
        Ok(Self(kinds))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (kind, weight)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}{kind}={weight}")?;
        }
        Ok(())
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let (name, detail) = match text.split_once(':') {
        Some((name, detail)) => (name, Some(detail)),
        None => (text, None),
    };
    let kind = match name {
        "payload" => Kind::Payload(detail.map_or(Ok(PAYLOAD_BYTES), bytes)?),
        "progress" => Kind::Progress(Job::burst(detail.map_or(Ok(STEPS), steps)?)),
        "echo" => Kind::Echo,
        "elicitation" => Kind::Elicitation,
        "journaled" => Kind::Journaled,
        "count" => Kind::Count,
        "update" => Kind::Update,
        _ => {
            return Err(format!(
                "{name:?} is no kind of call; there are echo, payload[:64KiB], progress[:10], \
                 elicitation, journaled, count and update"
            ));
        }
    };
    match (kind, detail) {
        (Kind::Payload(_) | Kind::Progress(_), _) | (_, None) => Ok(kind),
        (_, Some(detail)) => Err(format!("{name} takes no {detail:?}")),
    }
}

fn steps(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(steps) if (1..=10_000).contains(&steps) => Ok(steps),
        _ => Err(format!("{text:?} is no number of steps from 1 to 10000")),
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = match text.strip_suffix("KiB") {
        Some(number) => (number, 1024),
        None => match text.strip_suffix("MiB") {
            Some(number) => (number, 1024 * 1024),
            None => (text, 1),
        },
    };
    let bytes = number
        .parse()
        .ok()
        .and_then(|number: usize| number.checked_mul(unit));
    match bytes {
        Some(bytes) if (32..=64 * 1024 * 1024).contains(&bytes) => Ok(bytes),
        _ => Err(format!(
            "{text:?} is no size from 32 to 64MiB; write 4096, 64KiB or 1MiB"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Job, Kind, Mix};

    #[test]
    fn kinds_come_as_often_as_their_weights_say() {
        let mix: Mix = "echo=3,payload:1MiB=2,progress=1"
            .parse()
            .expect("is a mix");
        let mut seen = [0; 3];
        for chance in 0..600 {
            seen[mix.pick(chance).0] += 1;
        }
        assert_eq!(seen, [300, 200, 100]);
        let kinds: Vec<Kind> = mix.kinds().collect();
        assert_eq!(
            kinds[1..],
            [Kind::Payload(1 << 20), Kind::Progress(Job::burst(10))]
        );
        assert_eq!(mix.to_string(), "echo=3,payload:1MiB=2,progress:10=1");
    }

    #[test]
    fn what_is_no_mix_is_refused_with_a_reason() {
        for (wrong, why) in [
            ("ecko", "no kind"),
            ("echo=0", "no weight"),
            ("echo=1,echo=2", "twice"),
            ("payload:1GB", "no size"),
            ("progress:0", "no number of steps"),
            ("echo:3", "takes no"),
        ] {
            let error = wrong.parse::<Mix>().expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
