use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, SystemTime};

type TimeText = [u8; 27];

const EPOCH: TimeText = *b"1970-01-01T00:00:00.000000Z";

const FRACTION: Range<usize> = 20..26;

thread_local! {
    /// The last second and its text, because many events share it.
    static LAST: Cell<(u64, TimeText)> = const { Cell::new((0, EPOCH)) };
}

pub(super) fn now() -> String {
    let mut text = Vec::new();
    write_now(&mut text);
    String::from_utf8(text).unwrap_or_default()
}

pub(super) fn write_now(text: &mut Vec<u8>) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    write(now.unwrap_or_default(), text);
}

fn write(since_epoch: Duration, text: &mut Vec<u8>) {
    let seconds = since_epoch.as_secs();
    let (last, mut time) = LAST.get();
    if last != seconds {
        time = begin(seconds);
    }
    digits(since_epoch.subsec_micros().into(), &mut time[FRACTION]);
    text.extend_from_slice(&time);
}

/// Kept out of line, because inlining it would slow down the caller.
#[cold]
#[inline(never)]
fn begin(seconds: u64) -> TimeText {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let mut text = EPOCH;
    digits(year, &mut text[..4]);
    digits(month, &mut text[5..7]);
    digits(day, &mut text[8..10]);
    digits(of_day / 3600, &mut text[11..13]);
    digits(of_day / 60 % 60, &mut text[14..16]);
    digits(of_day % 60, &mut text[17..19]);
    LAST.set((seconds, text));
    text
}

/// Converts days since 1970. Counts years from March, in eras of 400 years, so that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day)
}

fn digits(mut number: u64, text: &mut [u8]) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::write;

    #[test]
    fn times_are_written_by_rfc_3339() {
        for (seconds, micros, expected) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, 5, "2000-02-29T00:00:00.000005Z"),
            (951_782_400, 600_000, "2000-02-29T00:00:00.600000Z"),
            (0, 10, "1970-01-01T00:00:00.000010Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000Z"),
            (1_735_689_599, 999_999, "2024-12-31T23:59:59.999999Z"),
            (4_107_542_400, 1, "2100-03-01T00:00:00.000001Z"),
        ] {
            let mut text = Vec::new();
            write(Duration::new(seconds, micros * 1000), &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
