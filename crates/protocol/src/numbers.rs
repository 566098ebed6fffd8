/// All numbers of at most this many digits have distinct doubles.
const DIGITS: usize = 15;

/// Whether a `serde_json::Value` would round the number.
pub fn is_rounded(written: &str) -> bool {
    let is_short = written.len() <= DIGITS && !written.contains(['e', 'E']);
    if is_short || written.parse::<i64>().is_ok() || written.parse::<u64>().is_ok() {
        return false;
    }
    let Ok(double) = written.parse::<f64>() else {
        return false;
    };
    let digits = significant(written);
    // A double is written with the fewest digits that read back as the same double.
    let is_exact = double.is_normal()
        && (digits.len() <= DIGITS || digits == significant(&format!("{double:e}")));
    !is_exact && !digits.is_empty() && double.is_finite()
}

fn significant(text: &str) -> String {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::is_rounded;

    #[test]
    fn a_number_that_a_value_cannot_hold_is_rounded() {
        for exact in [
            "0",
            "-0",
            "1",
            "-1.5",
            "1e3",
            "1E+2",
            "0.1",
            "9007199254740993",
            "9223372036854775807",
            "18446744073709551615",
            "-9223372036854775808",
            "100000000000000000000",
            "1e300",
            "0.30000000000000004",
            "0.0e5",
        ] {
            assert!(!is_rounded(exact), "{exact}");
        }
        for other in [
            "18446744073709551617",
            "-9223372036854775809",
            "100000000000000000001",
            "0.10000000000000000000001",
            "1.00000000000000000000001",
            "1e-400",
            "0.1000000000000000055511151231257828",
        ] {
            assert!(is_rounded(other), "{other}");
        }
    }
}
