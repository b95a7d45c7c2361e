//! Dates and times in the forms that people write.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};

use crate::batch::EVENT_TIME_COLUMN;

use crate::connect::ConnectError;

const NS_PER_SECOND: i128 = 1_000_000_000;
const NS_PER_DAY: i128 = 86_400 * NS_PER_SECOND;

/// Reads times from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeParser {
    form: Form,
    /// Where the times are that do not say it.
    zone: FixedOffset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// ISO 8601, with `T` or a space, or only a date.
    Iso,
    /// A number since the Unix epoch, of units of so many nanoseconds.
    Epoch { unit_ns: i128 },
    /// As a pattern of `strftime` says.
    Pattern { pattern: String, has_zone: bool },
}

impl TimeParser {
    /// The parser that the options `time_format` and `time_zone` ask for.
    pub(crate) fn new(format: Option<&str>, zone: Option<&str>) -> Result<Self, ConnectError> {
        let zone = match zone {
            None | Some("Z" | "UTC") => Some(FixedOffset::east_opt(0)),
            Some(zone) => zone.parse().ok().map(Some),
        };
        let zone = zone.flatten().ok_or_else(|| {
            let reason = "is no offset from UTC, such as `+02:00`";
            ConnectError::option("time_zone", reason)
        })?;
        let epoch = |unit_ns| Form::Epoch { unit_ns };
        let form = match format.unwrap_or("iso") {
            "iso" => Form::Iso,
            "epoch_s" => epoch(NS_PER_SECOND),
            "epoch_ms" => epoch(1_000_000),
            "epoch_us" => epoch(1_000),
            "epoch_ns" => epoch(1),
            pattern => pattern_form(pattern)?,
        };
        Ok(Self { form, zone })
    }

    /// Nanoseconds from the Unix epoch to `text`.
    fn parse(&self, text: &str) -> Result<i128, String> {
        let text = text.trim();
        let nanoseconds = match &self.form {
            Form::Iso => string_to_datetime(&self.zone, text)
                .map(|time| since_epoch(&time))
                .ok(),
            Form::Epoch { unit_ns } => decimal(text, *unit_ns),
            Form::Pattern {
                pattern,
                has_zone: true,
            } => DateTime::parse_from_str(text, pattern)
                .map(|time| since_epoch(&time))
                .ok(),
            Form::Pattern { pattern, .. } => NaiveDateTime::parse_from_str(text, pattern)
                .or_else(|_| {
                    let date = NaiveDate::parse_from_str(text, pattern)?;
                    Ok::<_, chrono::ParseError>(date.and_time(NaiveTime::MIN))
                })
                .ok()
                .and_then(|time| self.zone.from_local_datetime(&time).single())
                .map(|time| since_epoch(&time)),
        };
        nanoseconds.ok_or_else(|| format!("`{text}` is no time in the form {}", self.form_name()))
    }

    fn form_name(&self) -> &str {
        match &self.form {
            Form::Iso => "of ISO 8601",
            Form::Epoch { .. } => "of a number since 1970",
            Form::Pattern { pattern, .. } => pattern,
        }
    }
}

fn pattern_form(pattern: &str) -> Result<Form, ConnectError> {
    let items: Vec<_> = StrftimeItems::new(pattern).collect();
    let is_literal = |item: &Item<'_>| matches!(item, Item::Literal(_) | Item::Space(_));
    if items.contains(&Item::Error) || items.iter().all(is_literal) {
        let reason = format!(
            "`{pattern}` is neither `iso`, `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns` nor a \
             pattern such as `%d.%m.%Y %H:%M:%S`"
        );
        return Err(ConnectError::option("time_format", reason));
    }
    let zones = ["%z", "%:z", "%::z", "%#z", "%+", "%s"];
    Ok(Form::Pattern {
        has_zone: zones.iter().any(|zone| pattern.contains(zone)),
        pattern: pattern.to_owned(),
    })
}

fn since_epoch<Z: TimeZone>(time: &DateTime<Z>) -> i128 {
    i128::from(time.timestamp()) * NS_PER_SECOND + i128::from(time.timestamp_subsec_nanos())
}

/// A decimal number of units, in nanoseconds; what is finer is cut off.
fn decimal(text: &str, unit_ns: i128) -> Option<i128> {
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || whole.is_empty() || whole.len() > 20 {
        return None;
    }
    let mut nanoseconds = whole.parse::<i128>().ok()? * unit_ns;
    let mut digit_ns = unit_ns;
    for digit in part.bytes() {
        digit_ns /= 10;
        nanoseconds += i128::from(digit - b'0') * digit_ns;
    }
    Some(if is_negative {
        -nanoseconds
    } else {
        nanoseconds
    })
}

/// Whether the time of `value` units since the Unix epoch has a date.
pub(crate) fn is_in_calendar(value: i64, unit: TimeUnit) -> bool {
    let per_second = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    DateTime::from_timestamp(value.div_euclid(per_second), 0).is_some()
}

/// An inferred schema in which the column of the event time is a time though it looked like
/// text or a date; where the form of times `is_given`, whatever it looked like.
pub(crate) fn event_time_as_time(
    schema: Schema,
    event_time: Option<&str>,
    is_given: bool,
) -> Schema {
    let name = event_time.unwrap_or(EVENT_TIME_COLUMN);
    let settled = |field: &Arc<Field>| {
        let field = field.as_ref().clone();
        let becomes_time = match field.data_type() {
            DataType::Timestamp(_, _) => false,
            DataType::Utf8 | DataType::Date32 => true,
            _ => is_given,
        };
        if field.name() == name && becomes_time {
            field.with_data_type(DataType::Timestamp(TimeUnit::Millisecond, None))
        } else {
            field
        }
    };
    let fields: Vec<Field> = schema.fields().iter().map(settled).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The columns of a file that hold times, which are read as text first.
#[derive(Clone, Debug)]
pub(crate) struct TimeColumns {
    parser: TimeParser,
    read_schema: SchemaRef,
    schema: SchemaRef,
    columns: Vec<usize>,
}

impl TimeColumns {
    /// The times among the columns of `schema`: timestamps, and with a pattern also dates.
    pub(crate) fn new(schema: SchemaRef, parser: TimeParser) -> Self {
        let is_time = |field: &Field| match field.data_type() {
            DataType::Timestamp(_, _) => true,
            DataType::Date32 => matches!(parser.form, Form::Pattern { .. }),
            _ => false,
        };
        let mut columns = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let field = field.as_ref().clone();
            if is_time(&field) {
                columns.push(index);
                fields.push(field.with_data_type(DataType::Utf8));
            } else {
                fields.push(field);
            }
        }
        Self {
            read_schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            parser,
            schema,
            columns,
        }
    }

    /// The schema to read with: times are text.
    pub(crate) const fn read_schema(&self) -> &SchemaRef {
        &self.read_schema
    }

    /// A batch as it was read, with its times as times.
    ///
    /// # Errors
    /// A sentence, when a text is no time.
    pub(crate) fn convert(&self, batch: RecordBatch) -> Result<RecordBatch, String> {
        if self.columns.is_empty() {
            return Ok(batch);
        }
        let mut columns = batch.columns().to_vec();
        for &index in &self.columns {
            let texts = columns[index].as_string_opt::<i32>();
            let texts = texts.ok_or("a time that was not read as text")?;
            let field = self.schema.field(index);
            columns[index] = self
                .times(texts, field.data_type())
                .map_err(|reason| format!("the column `{}`: {reason}", field.name()))?;
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| error.to_string())
    }

    fn times(&self, texts: &StringArray, data_type: &DataType) -> Result<ArrayRef, String> {
        let unit_ns = match data_type {
            DataType::Date32 => NS_PER_DAY,
            DataType::Timestamp(TimeUnit::Second, _) => NS_PER_SECOND,
            DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
            DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000,
            _ => 1,
        };
        let time = |text: Option<&str>| -> Result<Option<i64>, String> {
            let Some(text) = text else { return Ok(None) };
            let units = self.parser.parse(text)?.div_euclid(unit_ns);
            let fits = |units: &i64| match data_type {
                DataType::Timestamp(unit, _) => is_in_calendar(*units, *unit),
                _ => true,
            };
            let units = i64::try_from(units).ok().filter(fits);
            units
                .map(Some)
                .ok_or_else(|| format!("`{text}` does not fit into {data_type}"))
        };
        let times: Int64Array = texts.iter().map(time).collect::<Result<_, _>>()?;
        let times: ArrayRef = Arc::new(times);
        let times = match data_type {
            // Days are 32 bits wide.
            DataType::Date32 => {
                cast(&times, &DataType::Int32).and_then(|days| cast(&days, data_type))
            }
            _ => cast(&times, data_type),
        };
        times.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(format: &str, zone: Option<&str>, text: &str) -> Result<i128, String> {
        let parser = TimeParser::new(Some(format), zone).unwrap();
        parser.parse(text).map(|ns| ns.div_euclid(1_000_000))
    }

    #[test]
    fn times_are_read_in_the_forms_that_people_write() {
        let expected = 1_577_934_245_000;
        for (format, zone, text) in [
            ("iso", None, "2020-01-02T03:04:05Z"),
            ("iso", None, " 2020-01-02 03:04:05 "),
            ("iso", None, "2020-01-02T05:04:05+02:00"),
            ("iso", Some("+02:00"), "2020-01-02 05:04:05"),
            ("iso", Some("+02:00"), "2020-01-02T03:04:05Z"),
            ("epoch_s", None, "1577934245"),
            ("epoch_ms", Some("+02:00"), "1577934245000"),
            ("epoch_us", None, "1577934245000000"),
            ("epoch_ns", None, "1577934245000000000"),
            ("%d.%m.%Y %H:%M:%S", None, "02.01.2020 03:04:05"),
            ("%d.%m.%Y %H:%M:%S", Some("-0100"), "02.01.2020 02:04:05"),
            ("%Y%m%d%H%M%S%z", Some("-01:00"), "20200102040405+0100"),
            ("%b %d %Y %I:%M:%S %p", None, "Jan 02 2020 03:04:05 AM"),
        ] {
            assert_eq!(ms(format, zone, text), Ok(expected), "{format}: {text}");
        }
        assert_eq!(ms("iso", None, "2020-01-02"), Ok(1_577_923_200_000));
        assert_eq!(ms("%d/%m/%y", None, "02/01/20"), Ok(1_577_923_200_000));
        assert_eq!(ms("epoch_s", None, "-1.5"), Ok(-1500));
        assert_eq!(ms("epoch_s", None, "0.0019999999999999"), Ok(1));
    }

    #[test]
    fn what_is_no_time_is_refused_with_the_form_that_was_expected() {
        for (format, text) in [
            ("iso", "yesterday"),
            ("epoch_s", ""),
            ("epoch_s", "1e9"),
            ("epoch_s", "99999999999999999999999999999999999999999"),
            ("%d.%m.%Y", "2020-01-02"),
        ] {
            let reason = ms(format, None, text).unwrap_err();
            assert!(reason.contains("is no time in the form"), "{reason}");
        }
    }

    #[test]
    fn an_option_that_is_no_form_or_no_offset_is_refused() {
        for format in ["", "epoch", "%Q", "rfc"] {
            let error = TimeParser::new(Some(format), None).unwrap_err();
            assert!(error.to_string().contains("`time_format`"), "{error}");
        }
        let error = TimeParser::new(None, Some("Europe/Berlin")).unwrap_err();
        assert!(error.to_string().contains("`time_zone`"), "{error}");
    }
}
