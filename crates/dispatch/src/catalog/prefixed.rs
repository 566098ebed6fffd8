use sha2::{Digest as _, Sha256};

/// Maximum characters of a name that model APIs accept.
const LONGEST: usize = 64;
const DIGEST: usize = 8;

pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    let whole = format!("{prefix}{name}");
    let room = LONGEST - DIGEST - 1;
    if whole.len() <= LONGEST || name.len() > LONGEST || prefix.len() >= room || !whole.is_ascii() {
        return whole;
    }
    let digest = Sha256::digest(&whole);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{}", &whole[..room], &digest[..DIGEST])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, prefixed};

    #[test]
    fn a_prefix_makes_no_name_too_long() {
        assert_eq!(prefixed("pets-", "list"), "pets-list");
        let long = "x".repeat(60);
        let (one, other) = (
            prefixed("pets-", &long),
            prefixed("pets-", &(long.clone() + "y")),
        );
        assert!(one.len() == LONGEST && other.len() == LONGEST && one != other);
        assert!(one.starts_with("pets-xxx"), "{one}");
        assert_eq!(prefixed("pets-", &long), one);
        let longer = "x".repeat(70);
        assert_eq!(prefixed("pets-", &longer), format!("pets-{longer}"));
        assert_eq!(
            prefixed(&"p".repeat(60), "list_all"),
            "p".repeat(60) + "list_all"
        );
    }
}
