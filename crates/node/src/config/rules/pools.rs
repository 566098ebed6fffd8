use std::collections::BTreeMap;

use super::super::Pool;
use super::super::setting_path::SettingPath;
use super::{Backend, Broken, Settings};

/// Maximum characters of a tool's name (2025-11-25 and later, Tools, Tool Names).
const LONGEST_NAME: usize = 128;
/// Maximum characters of a prefix, which leave room for the backend's own names.
const LONGEST_PREFIX: usize = 64;
/// Maximum characters of a pool's name, because certificates contain pools as DNS labels.
pub const LONGEST_POOL_NAME: usize = 63;

pub(super) fn pools(settings: &Settings, broken: &mut Broken) {
    for (name, config) in &settings.pools {
        pool(name, config, broken);
    }
}

pub(super) fn pool(name: &str, pool: &Pool, broken: &mut Broken) {
    let path = SettingPath::parse("pools").key(name);
    if let Err(reason) = check_name(name) {
        broken.add(path.clone(), reason);
    }
    let mut wrong = |member: &str, reason: String| {
        broken.add(path.member(member), reason);
    };
    if pool.limits.concurrency == 0 {
        wrong("concurrency", "must be at least 1".to_owned());
    }
    prefix(pool, &mut wrong);
    renamed(pool, &mut wrong);
    patterns(pool, &mut wrong);
    backend(&pool.backend, &mut wrong);
}

/// # Errors
///
/// The characters that a pool's name may have.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    let is_name = (1..=LONGEST_POOL_NAME).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with(['-', '_'])
        && !name.contains("__");
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "a pool's name begins with a letter or digit and has at most {LONGEST_POOL_NAME} characters: a-z, 0-9, - and single _"
        )),
    }
}

fn is_fit(part: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    part.bytes().all(fits)
}

fn prefix(pool: &Pool, wrong: &mut impl FnMut(&str, String)) {
    if pool.offer.prefix.len() > LONGEST_PREFIX {
        wrong(
            "prefix",
            format!("a prefix has at most {LONGEST_PREFIX} characters"),
        );
    }
    if !is_fit(&pool.offer.prefix) {
        let reason =
            "a prefix is made of letters, digits, - _ . and /, as clients take them in names";
        wrong("prefix", reason.to_owned());
    }
}

fn renamed(pool: &Pool, wrong: &mut impl FnMut(&str, String)) {
    let renamed: [(&str, &BTreeMap<String, String>); 2] = [
        ("tools.rename", &pool.offer.tools.rename),
        ("prompts.rename", &pool.offer.prompts.rename),
    ];
    for (member, renamed) in renamed {
        for (at, (own, to)) in renamed.iter().enumerate() {
            if let Some((other, _)) = renamed.iter().take(at).find(|(_, taken)| *taken == to) {
                let reason = format!(
                    "{other:?} and {own:?} are both called {to:?}: give each a name of its own"
                );
                wrong(member, reason);
            }
            if pool.offer.prefix.len() + to.len() > LONGEST_NAME {
                let reason = format!(
                    "what {own:?} is called is longer than {LONGEST_NAME} characters, with the prefix"
                );
                wrong(member, reason);
            } else if to.is_empty() || !is_fit(to) {
                let reason = format!(
                    "{own:?} cannot be called {to:?}: a name is made of letters, digits, - _ . and /"
                );
                wrong(member, reason);
            }
        }
    }
}

fn patterns(pool: &Pool, wrong: &mut impl FnMut(&str, String)) {
    let (tools, prompts) = (&pool.offer.tools, &pool.offer.prompts);
    for (member, named) in [
        ("tools.rename", tools.rename.keys().collect::<Vec<_>>()),
        ("tools.describe", tools.describe.keys().collect()),
        ("tools.hints", tools.hints.keys().collect()),
        ("prompts.rename", prompts.rename.keys().collect()),
        ("prompts.describe", prompts.describe.keys().collect()),
    ] {
        for pattern in named.iter().filter(|name| name.contains('*')) {
            let reason = format!(
                "{pattern:?} is no name: name each one by itself; * stands for any characters in `allow` and `deny` only"
            );
            wrong(member, reason);
        }
    }
}

fn backend(backend: &Backend, wrong: &mut impl FnMut(&str, String)) {
    let at_least_one = || "must be at least 1".to_owned();
    match backend {
        backend if backend.is_unset() => {
            let reason = "`command` must name a program, or the `backend` be \"demo\", \"conformance\" or \"handler\"";
            wrong("backend.stdio.command", reason.to_owned());
        }
        Backend::Stdio(stdio) => {
            if stdio.processes == Some(0) {
                wrong("backend.stdio.processes", at_least_one());
            }
            if let Some(reason) = whole_line(&stdio.command, &stdio.args) {
                wrong("backend.stdio.command", reason);
            }
        }
        Backend::Http(http) => {
            if let Err((member, reason)) = http.check() {
                wrong(&format!("backend.http.{member}"), reason);
            }
        }
        Backend::OpenApi(openapi) => {
            if let Err((member, reason)) = openapi.check() {
                wrong(&format!("backend.openapi.{member}"), reason);
            }
        }
        Backend::Demo | Backend::Conformance | Backend::Handler => {}
    }
}

/// Finds a whole command line in place of a program, whose path may contain spaces.
fn whole_line(command: &str, args: &[String]) -> Option<String> {
    let mut words = command.split_whitespace();
    let program = words.next()?;
    let rest: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    let is_line = args.is_empty() && !rest.is_empty() && !std::path::Path::new(command).exists();
    is_line.then(|| {
        format!(
            "Shoal starts one program and no shell, and there is no program {command:?}: write command = {program:?}, \
             args = [{}]",
            rest.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_POOL_NAME, check_name};

    #[test]
    fn a_pool_has_a_name_that_certificates_and_logs_can_show() {
        let longest = "x".repeat(LONGEST_POOL_NAME);
        for name in ["a", "7", "team-a_weather", "a-", "a_", &longest] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let longer = format!("{longest}x");
        for name in [
            "", "-x", "_x", "a__b", "A", "a.b", "a b", "a\nb", "\u{e4}", &longer,
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
