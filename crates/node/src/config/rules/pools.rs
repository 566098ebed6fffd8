//! Checks pools: their names, what they call what they offer, and their backends.

use super::{Backend, BrokenRule, Settings};

/// Characters of a name (2025-11-25 and later, Tools, Tool Names).
const LONGEST_NAME: usize = 128;
/// Leaves room for the backend's own names.
const LONGEST_PREFIX: usize = 64;

pub(super) fn pools(settings: &Settings) -> Result<(), BrokenRule> {
    for (name, pool) in &settings.pools {
        let setting = |member: &str| format!("pools.{name}.{member}");
        let fit = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
            && !name.contains("__")
            && !name.is_empty();
        if !fit {
            return Err(BrokenRule::new(
                format!("pools.{name}"),
                "a pool's name is made of a-z, 0-9, - and single _",
            ));
        }
        if pool.concurrency == 0 {
            return Err(BrokenRule::new(
                setting("concurrency"),
                "must be at least 1",
            ));
        }
        if let Backend::Stdio(stdio) = &pool.backend
            && stdio.processes == Some(0)
        {
            let setting = setting("backend.stdio.processes");
            return Err(BrokenRule::new(setting, "must be at least 1"));
        }
        let is_fit = |part: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
            part.bytes().all(fits)
        };
        if pool.prefix.len() > LONGEST_PREFIX {
            let reason = format!("a prefix has at most {LONGEST_PREFIX} characters");
            return Err(BrokenRule::new(setting("prefix"), reason));
        }
        if !is_fit(&pool.prefix) {
            return Err(BrokenRule::new(
                setting("prefix"),
                "a prefix is made of letters, digits, - _ . and /, as clients take them in names",
            ));
        }
        for (member, renamed) in [
            ("tools.rename", &pool.tools.rename),
            ("prompts.rename", &pool.prompts.rename),
        ] {
            let too_long = |to: &str| pool.prefix.len() + to.len() > LONGEST_NAME;
            if let Some((own, _)) = renamed.iter().find(|(_, to)| too_long(to)) {
                let reason = format!(
                    "what {own:?} is called is longer than {LONGEST_NAME} characters, with the prefix"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
            let unfit = renamed.iter().find(|(_, to)| to.is_empty() || !is_fit(to));
            if let Some((own, to)) = unfit {
                let reason = format!(
                    "{own:?} cannot be called {to:?}: a name is made of letters, digits, - _ . and /"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
        }
        let (tools, prompts) = (&pool.tools, &pool.prompts);
        for (member, mut named) in [
            ("tools.rename", tools.rename.keys().collect::<Vec<_>>()),
            ("tools.describe", tools.describe.keys().collect()),
            ("tools.hints", tools.hints.keys().collect()),
            ("prompts.rename", prompts.rename.keys().collect()),
            ("prompts.describe", prompts.describe.keys().collect()),
        ] {
            named.retain(|name| name.contains('*'));
            if let Some(pattern) = named.first() {
                let reason = format!(
                    "{pattern:?} is no name: name each one by itself; * stands for any characters in `allow` and `deny` only"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
        }
        if pool.backend.is_unset() {
            return Err(BrokenRule::new(
                setting("backend.stdio.command"),
                "`command` must name a program, or the `backend` be \"demo\", \"conformance\" or \"handler\"",
            ));
        }
        if let Backend::Http(http) = &pool.backend {
            let checked = http.check();
            checked.map_err(|(member, reason)| {
                BrokenRule::new(setting(&format!("backend.http.{member}")), reason)
            })?;
        }
        if let Backend::OpenApi(openapi) = &pool.backend {
            let checked = openapi.check();
            checked.map_err(|(member, reason)| {
                BrokenRule::new(setting(&format!("backend.openapi.{member}")), reason)
            })?;
        }
    }
    Ok(())
}
