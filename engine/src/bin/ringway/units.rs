//! Numbers for people.

use std::time::Duration;

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A length of time with three digits at least, in the unit that suits it.
pub(crate) fn short(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (value, unit) = match ns {
        ns if ns < 1e3 => return format!("{ns} ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns if ns < 3600e9 => (ns / 1e9, "s"),
        ns => (ns / 3600e9, "h"),
    };
    match value {
        value if value < 10.0 => format!("{value:.2} {unit}"),
        value if value < 100.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

/// A number of bytes in the unit that suits it.
pub(crate) fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.0} KiB", value / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.0} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

/// So many of `what`: `1 task`, `2 tasks`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        several => format!("{several} {what}s"),
    }
}

/// Rows per second; 0 if no time has passed.
pub(crate) fn rate(rows: u64, elapsed: Duration) -> u64 {
    match elapsed.as_secs_f64() {
        seconds if seconds > 0.0 => (rows as f64 / seconds) as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_three_digits_at_a_time() {
        let numbers = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_time_has_the_unit_that_suits_it() {
        let times = [999, 1_234, 56_700_000, 8_900_000_000, 7_200_000_000_000];
        let times = times.map(|ns| short(Duration::from_nanos(ns)));
        assert_eq!(times, ["999 ns", "1.23 us", "56.7 ms", "8.90 s", "2.00 h"]);
    }

    #[test]
    fn no_time_means_no_rate() {
        assert_eq!(rate(5, Duration::ZERO), 0);
        assert_eq!(rate(5, Duration::from_millis(500)), 10);
    }
}
