//! Derives a pool's name from its object alone, so that other objects cannot change it.

use sha2::{Digest as _, Sha256};

/// Maximum characters of a name, because certificates contain pools as DNS labels.
const LONGEST: usize = 63;
/// Number of hexadecimal digits of the hash in a name that is shortened or changed.
const DIGITS: usize = 8;

/// Derives the name of an object's pool. Kubernetes names have no underscore, so the joined name is unique.
pub(crate) fn pool_name(namespace: &str, name: &str) -> String {
    let whole = format!("{namespace}_{name}");
    if whole.len() <= LONGEST && !name.contains('.') {
        return whole;
    }
    let digest = Sha256::digest(whole.as_bytes());
    let digits: String = (digest.iter().take(DIGITS / 2))
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let plain = whole.replace('.', "-");
    let kept = &plain[..plain.len().min(LONGEST - DIGITS - 1)];
    format!("{}-{digits}", kept.trim_end_matches(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::pool_name;

    #[test]
    fn names_are_legal_and_differ() {
        assert_eq!(pool_name("team-a", "weather"), "team-a_weather");
        assert_ne!(pool_name("a-b", "c"), pool_name("a", "b-c"));
        let dotted = pool_name("team", "weather.v1");
        assert!(dotted.starts_with("team_weather-v1-"), "{dotted}");
        assert_ne!(dotted, pool_name("team", "weather-v1"));
        let (one, other) = ("x".repeat(63), format!("{}y", "x".repeat(62)));
        let (one, other) = (pool_name(&one, &one), pool_name(&one, &other));
        assert_ne!(one, other);
        for name in [one, other, dotted] {
            assert!(name.len() <= 63 && !name.contains("__"), "{name}");
            let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
            assert!(name.bytes().all(fits), "{name}");
        }
    }
}
