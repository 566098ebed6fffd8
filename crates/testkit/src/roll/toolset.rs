use std::time::Duration;

use clap::ValueEnum;
use rand::Rng as _;
use rand::rngs::StdRng;

use crate::history::Tool;

const SHORTEST_LONG: Duration = Duration::from_secs(2);

const STEP_MS: u64 = 400;

/// The tools that clients call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Toolset {
    /// Tools of the demo server. A tool that counts its calls in the session reveals repeated executions.
    Demo,
    /// Tools of `chaos_tools`, which record their executions in a ledger.
    Chaos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) tool: Tool,
    pub(super) steps: u32,
    pub(super) ms: u64,
}

impl Toolset {
    pub(super) fn long(self, dice: &mut StdRng, longest: Duration) -> Plan {
        let shortest = SHORTEST_LONG.min(longest);
        let time = shortest + (longest - shortest).mul_f64(dice.random());
        let steps = u64::try_from(time.as_millis()).unwrap_or(u64::MAX) / STEP_MS;
        let tool = match self {
            Self::Demo => Tool::Job,
            Self::Chaos if dice.random_bool(0.5) => Tool::Steps,
            Self::Chaos => Tool::StepsOnce,
        };
        Plan {
            tool,
            steps: u32::try_from(steps).unwrap_or(u32::MAX).max(1),
            ms: STEP_MS,
        }
    }

    pub(super) fn short(self, dice: &mut StdRng, count: &mut u32) -> Plan {
        let plan = |tool, steps| Plan { tool, steps, ms: 0 };
        if dice.random_bool(0.6) {
            return plan(Tool::Echo, 0);
        }
        match self {
            Self::Chaos => plan(Tool::Record, 0),
            Self::Demo => {
                let counted = plan(Tool::CountUp, *count);
                *count += 1;
                counted
            }
        }
    }

    pub(super) fn modern(self, dice: &mut StdRng) -> Plan {
        if dice.random_bool(0.8) {
            return Plan {
                tool: Tool::Echo,
                steps: 0,
                ms: 0,
            };
        }
        let tool = match self {
            Self::Demo => Tool::Job,
            Self::Chaos => Tool::Steps,
        };
        Plan {
            tool,
            steps: dice.random_range(2..10),
            ms: STEP_MS,
        }
    }
}
