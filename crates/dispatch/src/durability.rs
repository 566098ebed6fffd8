//! Which tool calls may be repeated.

use shoal_ports::Durability;

use crate::catalog::Hints;
use crate::config::{DurabilityPolicy, PoolConfig};

/// How a call of the tool must be carried; the most specific setting wins, and of two that clash the
/// careful one.
pub(crate) fn of_tool(pool: &PoolConfig, tool: &str, hints: Hints) -> Durability {
    let listed = |names: &[String]| names.iter().any(|name| name == tool);
    if listed(&pool.journaled) {
        return Durability::Journaled;
    }
    if listed(&pool.repeatable) {
        return Durability::Repeatable;
    }
    match pool.durability {
        DurabilityPolicy::Always => Durability::Journaled,
        DurabilityPolicy::Never => Durability::Repeatable,
        DurabilityPolicy::Auto if hints.safe_to_repeat() => Durability::Repeatable,
        DurabilityPolicy::Auto => Durability::Journaled,
    }
}

#[cfg(test)]
mod tests {
    use super::of_tool;
    use crate::catalog::Hints;
    use crate::config::{DurabilityPolicy, PoolConfig};
    use shoal_ports::Durability::{Journaled, Repeatable};

    #[test]
    fn hints_decide_unless_the_configuration_does() {
        let (plain, safe) = (
            Hints::default(),
            Hints {
                read_only: true,
                ..Hints::default()
            },
        );
        assert_eq!(of_tool(&PoolConfig::default(), "t", plain), Journaled);
        assert_eq!(of_tool(&PoolConfig::default(), "t", safe), Repeatable);
        let mut pool = PoolConfig {
            durability: DurabilityPolicy::Never,
            ..PoolConfig::default()
        };
        assert_eq!(of_tool(&pool, "t", plain), Repeatable);
        pool.journaled.push("t".into());
        pool.repeatable.push("t".into());
        assert_eq!(of_tool(&pool, "t", safe), Journaled);
        pool.journaled.clear();
        pool.durability = DurabilityPolicy::Always;
        assert_eq!(of_tool(&pool, "t", plain), Repeatable);
        assert_eq!(of_tool(&pool, "other", safe), Journaled);
    }
}
