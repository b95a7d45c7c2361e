//! Times and sizes as a job file writes them: a number with its unit.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A length of time, such as `"24h"`, `"1h 30m"` or `"500ms"`. Units: `ms`, `s`, `m`, `h`, `d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    ms: u64,
}

/// A length of time that may be negative, such as `"-5m"`. Units as for [`Span`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignedSpan {
    ms: i64,
}

/// A size, such as `"64MiB"`. Units: `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    bytes: u64,
}

impl Span {
    const UNITS: [(&'static str, u64); 5] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];

    /// In milliseconds. It fits an `i64`.
    pub const fn ms(self) -> u64 {
        self.ms
    }

    /// In milliseconds of event time.
    pub const fn event_time_ms(self) -> i64 {
        self.ms.cast_signed()
    }
}

impl SignedSpan {
    /// In milliseconds of event time.
    pub const fn event_time_ms(self) -> i64 {
        self.ms
    }
}

impl Size {
    const UNITS: [(&'static str, u64); 7] = [
        ("B", 1),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];

    /// A size of so many bytes.
    pub const fn of_bytes(bytes: usize) -> Self {
        Self {
            bytes: bytes as u64,
        }
    }

    /// In bytes. It fits a `usize`.
    pub const fn bytes(self) -> usize {
        self.bytes as usize
    }
}

/// Why a text is no time or size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no {what}: write whole numbers with a unit, such as {example}; units are {units}"
)]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
    units: String,
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let ms = total(text, &Self::UNITS);
        ms.map(|ms| Self { ms }).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "time",
            example: "\"24h\" or \"1h 30m\"",
            units: names(&Self::UNITS),
        })
    }
}

impl FromStr for SignedSpan {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (is_negative, length) = match text.strip_prefix('-') {
            Some(length) => (true, length),
            None => (false, text),
        };
        let span: Span = length.parse().map_err(|error| UnitError {
            text: text.to_owned(),
            example: "\"5m\" or \"-1h 30m\"",
            ..error
        })?;
        let ms = span.event_time_ms();
        Ok(Self {
            ms: if is_negative { -ms } else { ms },
        })
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bytes = total(text, &Self::UNITS);
        bytes.map(|bytes| Self { bytes }).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "size",
            example: "\"64MiB\"",
            units: names(&Self::UNITS),
        })
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(span.ms)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity::<Self>(
            "a time in quotes, such as \"24h\"",
            PhantomData,
        ))
    }
}

impl<'de> Deserialize<'de> for SignedSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity::<Self>(
            "a time in quotes, such as \"5m\" or \"-5m\"",
            PhantomData,
        ))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Quantity::<Self>(
            "a size in quotes, such as \"64MiB\"",
            PhantomData,
        ))
    }
}

struct Quantity<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = UnitError>> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// The sum of the parts of `text`, each a number with its unit; none where it is not that, or
/// does not fit an `i64`.
fn total(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: Option<u64> = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let (_, factor) = units.iter().find(|(unit, _)| *unit == &rest[..letters])?;
        rest = rest[letters..].trim_start();
        total = Some(
            total
                .unwrap_or(0)
                .checked_add(number.checked_mul(*factor)?)?,
        );
    }
    total.filter(|total| i64::try_from(*total).is_ok())
}

fn names(units: &[(&str, u64)]) -> String {
    units
        .iter()
        .map(|(unit, _)| *unit)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_whole_numbers_with_units() {
        for (text, ms) in [
            ("24h", 86_400_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("500 ms", 500),
            ("0s", 0),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().ms(), ms, "{text}");
        }
        for text in [
            "",
            "24",
            "h",
            "1.5h",
            "-1s",
            "1 hour",
            "99999999999999999999d",
            "1h,",
        ] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(
                error.contains("units are ms, s, m, h, d"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_bound_may_be_before_or_after() {
        for (text, ms) in [("-1h 30m", -5_400_000), ("5m", 300_000), (" -0s", 0)] {
            let span = text.parse::<SignedSpan>().unwrap();
            assert_eq!(span.event_time_ms(), ms, "{text}");
        }
        for text in ["", "-", "--1s", "- -1s", "5", "1h -30m"] {
            let error = text.parse::<SignedSpan>().unwrap_err().to_string();
            assert!(error.contains("-1h 30m"), "{text}: {error}");
        }
    }

    #[test]
    fn a_size_says_whether_it_counts_in_thousands() {
        for (text, bytes) in [("64MiB", 64 << 20), ("1 GB", 1_000_000_000), ("7B", 7)] {
            assert_eq!(text.parse::<Size>().unwrap().bytes(), bytes, "{text}");
        }
        assert!("64mb".parse::<Size>().is_err());
    }
}
