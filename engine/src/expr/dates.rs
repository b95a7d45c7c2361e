//! Functions of time: int64 milliseconds since 1970 in UTC.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimeUnit};
use arrow::error::ArrowError;

use super::functions::Function;
use super::value::Value;

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;
/// 1970 began on a Thursday and weeks begin on Monday.
const FIRST_MONDAY_MS: i64 = 4 * DAY_MS;

/// What date_trunc cuts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A length in milliseconds, and the time at which one begins.
    Fixed(i64, i64),
    Month,
    Quarter,
    Year,
}

const UNITS: &[(&str, Unit)] = &[
    ("second", Unit::Fixed(SECOND_MS, 0)),
    ("minute", Unit::Fixed(MINUTE_MS, 0)),
    ("hour", Unit::Fixed(HOUR_MS, 0)),
    ("day", Unit::Fixed(DAY_MS, 0)),
    ("week", Unit::Fixed(WEEK_MS, FIRST_MONDAY_MS)),
    ("month", Unit::Month),
    ("quarter", Unit::Quarter),
    ("year", Unit::Year),
];

/// The unit that a literal names, in any case.
pub(super) fn unit(literal: &dyn Array) -> Option<Unit> {
    let texts = literal.as_string_opt::<i32>()?;
    let name = (texts.len() == 1 && texts.is_valid(0)).then(|| texts.value(0))?;
    UNITS
        .iter()
        .find(|entry| entry.0.eq_ignore_ascii_case(name))
        .map(|entry| entry.1)
}

pub(super) fn unit_names() -> Vec<&'static str> {
    UNITS.iter().map(|entry| entry.0).collect()
}

/// year, month, day, hour, minute or second of a time, as int64.
pub(super) fn part(function: Function, arguments: &[Value]) -> Result<Value, ArrowError> {
    let [time] = arguments else {
        return Err(ArrowError::InvalidArgumentError(
            "one argument expected".to_string(),
        ));
    };
    let part = match function {
        Function::Year => DatePart::Year,
        Function::Month => DatePart::Month,
        Function::Day => DatePart::Day,
        Function::Hour => DatePart::Hour,
        Function::Minute => DatePart::Minute,
        _ => DatePart::Second,
    };
    let array = cast(&calendar(time, part)?, &DataType::Int64)?;
    Ok(Value { array, ..*time })
}

/// The beginning of the unit that a time lies in.
pub(super) fn truncate(arguments: &[Value]) -> Result<Value, ArrowError> {
    let [literal, time] = arguments else {
        return Err(ArrowError::InvalidArgumentError(
            "two arguments expected".to_string(),
        ));
    };
    let Some(unit) = unit(&literal.array) else {
        return Err(ArrowError::InvalidArgumentError("not a unit".to_string()));
    };
    let times = time.array.as_primitive::<Int64Type>();
    let begin = |time: i64, since: i64| {
        let overflow = || ArrowError::ArithmeticOverflow("date_trunc".to_string());
        time.checked_sub(since).ok_or_else(overflow)
    };
    let array: Int64Array = match unit {
        Unit::Fixed(length, origin) => times.try_unary(|time| {
            let since = (time.rem_euclid(length) - origin).rem_euclid(length);
            begin(time, since)
        })?,
        _ => {
            let days = days_before(time, unit)?;
            let days = days.as_primitive::<Int64Type>();
            let rows = times.iter().zip(days.iter()).map(|row| match row {
                (Some(time), Some(days)) => {
                    begin(time, days * DAY_MS + time.rem_euclid(DAY_MS)).map(Some)
                }
                _ => Ok(None),
            });
            rows.collect::<Result<_, ArrowError>>()?
        }
    };
    Ok(Value {
        array: Arc::new(array),
        ..*time
    })
}

/// How many days of the month, quarter or year are over.
fn days_before(time: &Value, unit: Unit) -> Result<ArrayRef, ArrowError> {
    let part = |part| calendar(time, part);
    let (days, month) = match unit {
        Unit::Month => (part(DatePart::Day)?, None),
        Unit::Quarter => (part(DatePart::DayOfYear)?, Some(part(DatePart::Month)?)),
        _ => (part(DatePart::DayOfYear)?, None),
    };
    let years = part(DatePart::Year)?;
    let (days, years) = (
        days.as_primitive::<Int32Type>(),
        years.as_primitive::<Int32Type>(),
    );
    let before = |row: usize| {
        let month = month
            .as_ref()
            .map(|month| month.as_primitive::<Int32Type>());
        let started = month.map_or(0, |month| quarter_start(month.value(row), years.value(row)));
        days.is_valid(row)
            .then(|| i64::from(days.value(row) - 1 - started))
    };
    Ok(Arc::new(
        (0..days.len()).map(before).collect::<Int64Array>(),
    ))
}

/// The days of the year before the quarter of a month.
fn quarter_start(month: i32, year: i32) -> i32 {
    let leap = i32::from((year % 4 == 0 && year % 100 != 0) || year % 400 == 0);
    match month {
        ..=3 => 0,
        4..=6 => 90 + leap,
        7..=9 => 181 + leap,
        _ => 273 + leap,
    }
}

/// A part of the UTC calendar, as int32; null outside of its range.
fn calendar(time: &Value, part: DatePart) -> Result<ArrayRef, ArrowError> {
    let stamps = cast(
        &time.array,
        &DataType::Timestamp(TimeUnit::Millisecond, None),
    )?;
    date_part(&stamps, part)
}
