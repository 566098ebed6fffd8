pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = value.abs();
    let digits = match magnitude {
        _ if value == value.trunc() => 0,
        _ if magnitude >= 100.0 => 0,
        _ if magnitude >= 10.0 => 1,
        _ if magnitude >= 1.0 => 2,
        _ if magnitude >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text.as_str(), None),
    };
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => ("-", whole),
        None => ("", whole),
    };
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

pub(super) fn quantile(at: f64) -> String {
    match at {
        0.0 => "min".to_owned(),
        1.0 => "max".to_owned(),
        // Rounded, because 0.999 × 100 is not 99.9 in binary.
        at => format!("p{}", (at * 1e6).round() / 1e4),
    }
}

pub(super) fn time_us(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", short(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", short(us / 1e3)),
        us => format!("{} µs", short(us)),
    }
}

#[cfg(test)]
mod tests {
    use super::{quantile, short, time_us};

    #[test]
    fn numbers_keep_what_matters() {
        assert_eq!(short(1_234_567.0), "1\u{202f}234\u{202f}567");
        assert_eq!(
            (short(12.345), short(0.01234), short(-3.0)),
            ("12.3".to_owned(), "0.0123".to_owned(), "-3".to_owned())
        );
        assert_eq!(short(f64::NAN), "–");
        assert_eq!(
            (quantile(0.999), quantile(1.0)),
            ("p99.9".to_owned(), "max".to_owned())
        );
        assert_eq!(
            (time_us(1_500.0), time_us(12.0)),
            ("1.50 ms".to_owned(), "12 µs".to_owned())
        );
    }
}
