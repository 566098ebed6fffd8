use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_protocol::{Method, RawJson};
use tokio::time::Instant;

/// A first turn of this time counts as long, because it delays the caller's task too much.
const LONG: Duration = Duration::from_millis(25);
/// The weight of a long turn; limited, because the machine may be the cause.
const WEIGHT: u32 = 8;
const TOO_MUCH: u32 = 2 * WEIGHT;
const FORGIVEN: Duration = Duration::from_secs(60);
const MOST: usize = 1000;

pub(super) struct TurnRequest {
    pub(super) method: Method,
    pub(super) params: Option<RawJson>,
}

impl TurnRequest {
    fn name(&self) -> String {
        let named = self.method.named();
        let name = named.and_then(|member| self.params.as_ref()?.member(member.as_str())?.string());
        name.unwrap_or_else(|| self.method.as_str().to_owned())
    }
}

/// Tools with recent long turns. A flag tells cheaply whether there are any.
#[derive(Default)]
pub(super) struct LongTurns {
    any: AtomicBool,
    tools: Mutex<HashMap<String, ToolWeight>>,
}

struct ToolWeight {
    weight: u32,
    last: Instant,
}

impl LongTurns {
    pub(super) fn forbid(&self, target: &TurnRequest) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let name = target.name();
        let mut tools = self.tools.lock();
        match tools.get(&name) {
            Some(taken) if taken.last.elapsed() >= FORGIVEN => {
                tools.remove(&name);
                self.any.store(!tools.is_empty(), Ordering::Relaxed);
                false
            }
            Some(taken) => taken.weight >= TOO_MUCH,
            None => false,
        }
    }

    pub(super) fn took(&self, time: Duration, target: &TurnRequest) {
        let long = time >= LONG;
        if !long && !self.any.load(Ordering::Relaxed) {
            return;
        }
        let name = target.name();
        let mut tools = self.tools.lock();
        if long {
            if tools.len() >= MOST {
                tools.clear();
            }
            let taken = tools.entry(name).or_insert_with(ToolWeight::nothing);
            taken.weight += WEIGHT;
            taken.last = Instant::now();
        } else if let Some(taken) = tools.get_mut(&name) {
            taken.weight -= 1;
            if taken.weight == 0 {
                tools.remove(&name);
            }
        }
        self.any.store(!tools.is_empty(), Ordering::Relaxed);
    }
}

impl ToolWeight {
    fn nothing() -> Self {
        Self {
            weight: 0,
            last: Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shoal_protocol::{Method, RawJson};

    use super::{FORGIVEN, LONG, LongTurns, MOST, TurnRequest, WEIGHT};

    const SHORT: Duration = Duration::ZERO;

    fn tool(name: &str) -> TurnRequest {
        TurnRequest {
            method: Method::ToolsCall,
            params: Some(RawJson::of(&serde_json::json!({ "name": name }))),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_takes_long_turns_goes_to_an_actor_for_a_while() {
        let turns = LongTurns::default();
        let (slow, quick) = (tool("slow"), tool("quick"));
        turns.took(LONG, &slow);
        assert!(!turns.forbid(&slow), "one may be the machine's fault");
        turns.took(LONG, &slow);
        assert!(turns.forbid(&slow) && !turns.forbid(&quick));
        tokio::time::advance(FORGIVEN).await;
        assert!(!turns.forbid(&slow));
        assert!(turns.tools.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn short_turns_outweigh_a_long_one() {
        let (turns, tool) = (LongTurns::default(), tool("mostly quick"));
        for _ in 0..3 {
            turns.took(LONG, &tool);
            (0..WEIGHT).for_each(|_| turns.took(SHORT, &tool));
            assert!(!turns.forbid(&tool) && turns.tools.lock().is_empty());
        }
        turns.took(LONG, &tool);
        (1..WEIGHT).for_each(|_| turns.took(SHORT, &tool));
        turns.took(LONG, &tool);
        assert!(!turns.forbid(&tool));
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_names_there_are_only_some_are_kept() {
        let turns = LongTurns::default();
        for number in 0..=MOST {
            turns.took(LONG, &tool(&number.to_string()));
        }
        assert!(turns.tools.lock().len() <= MOST);
    }
}
