//! Finds numbers in lines of JSON that their columns cannot hold: the decoder would cut off what
//! is behind the point, and would take the nearest time for one that is out of range.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Fields, SchemaRef};

use crate::connect::text::times::is_in_calendar;

/// Numbers of so few digits are in range of every type that is looked at here.
const SHORT_BYTES: usize = 12;

/// Fields among which one is looked for by each of them.
const FEW_FIELDS: usize = 16;

/// Checks the numbers of those columns that hold whole numbers or timestamps.
#[derive(Debug)]
pub(crate) struct WholeNumbers {
    schema: SchemaRef,
    places: Places,
}

impl WholeNumbers {
    /// The check for rows of `schema`; none where nothing is to be checked.
    pub(crate) fn new(schema: &SchemaRef) -> Option<Self> {
        let mut fields = schema.fields().iter();
        fields
            .any(|field| wanted(field.data_type()).is_some())
            .then(|| Self {
                schema: schema.clone(),
                places: Places::of(schema.fields()),
            })
    }

    /// Looks at one line. Whether it is JSON at all is the decoder's to say.
    ///
    /// # Errors
    /// A sentence that names the number and its column.
    pub(crate) fn check(&self, text: &[u8]) -> Result<(), String> {
        let mut scan = Scan {
            places: &self.places,
            fields: self.schema.fields(),
            open: Vec::new(),
            skipped: 0,
            is_key: false,
            kind: None,
            name: b"",
        };
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let end = match byte {
                b'"' => at + 1 + string_length(&text[at + 1..]),
                b'-' | b'0'..=b'9' => at + number_length(&text[at..]),
                _ => at + 1,
            };
            scan.token(&text[at..end.min(text.len())])?;
            at = end;
        }
        Ok(())
    }
}

/// Where fields are among others, for objects of many: by where these others are in memory,
/// which the schema keeps.
#[derive(Debug, Default)]
struct Places(HashMap<usize, HashMap<String, usize>>);

impl Places {
    fn of(fields: &Fields) -> Self {
        let mut places = Self::default();
        places.add(fields);
        places
    }

    fn add(&mut self, fields: &Fields) {
        if fields.len() > FEW_FIELDS {
            // Of several of one name the first counts.
            let named = fields.iter().enumerate().rev();
            let named = named
                .map(|(place, field)| (field.name().clone(), place))
                .collect();
            self.0.insert(fields.as_ptr().addr(), named);
        }
        for field in fields {
            self.add_inside(field.data_type());
        }
    }

    fn add_inside(&mut self, kind: &DataType) {
        match inside_of(kind) {
            Some(Open::Fields(fields, _)) => self.add(fields),
            Some(Open::Values(kind)) => self.add_inside(kind),
            None => {}
        }
    }

    fn find(&self, fields: &Fields, name: &[u8]) -> Option<usize> {
        match self.0.get(&fields.as_ptr().addr()) {
            Some(named) => named.get(std::str::from_utf8(name).ok()?).copied(),
            None => fields
                .iter()
                .position(|field| field.name().as_bytes() == name),
        }
    }
}

/// Where in a row a token is.
struct Scan<'a> {
    places: &'a Places,
    /// The columns of the row.
    fields: &'a Fields,
    /// The objects and lists that are open and hold something to check, outermost first.
    open: Vec<Open<'a>>,
    /// How many are open within them in which nothing is to be checked.
    skipped: usize,
    /// Whether a string would be the name of a field.
    is_key: bool,
    /// What the next value is to be, if it is to be checked.
    kind: Option<&'a DataType>,
    /// The name of the field that is read.
    name: &'a [u8],
}

enum Open<'a> {
    /// An object with these fields; the next one is probably that of the number.
    Fields(&'a Fields, usize),
    /// A list or a map of values of one type.
    Values(&'a DataType),
}

impl<'a> Scan<'a> {
    fn token(&mut self, token: &'a [u8]) -> Result<(), String> {
        match token {
            [b'{' | b'[', ..] => self.enter(),
            [b'}' | b']', ..] => self.leave(),
            [b',', ..] => self.is_key = true,
            [b':', ..] => self.is_key = false,
            [b'"', ..] if self.is_key && self.skipped == 0 => self.field(token),
            [b'-' | b'0'..=b'9', ..] if self.skipped == 0 => {
                if let Some(kind) = self.kind {
                    require_whole(kind, token, self.name)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self) {
        self.is_key = true;
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let inside = match self.kind.take() {
            _ if self.open.is_empty() => Some(Open::Fields(self.fields, 0)),
            Some(kind) => inside_of(kind),
            None => None,
        };
        match inside {
            Some(open) => self.open.push(open),
            None => self.skipped = 1,
        }
        self.await_value();
    }

    fn leave(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.open.pop();
        }
        self.await_value();
    }

    /// In lists and maps the type of the next value is known before it comes.
    fn await_value(&mut self) {
        self.kind = match self.open.last() {
            Some(Open::Values(kind)) if self.skipped == 0 => wanted(kind),
            _ => None,
        };
    }

    fn field(&mut self, token: &'a [u8]) {
        let Some(Open::Fields(fields, next)) = self.open.last_mut() else {
            return;
        };
        let name = token.get(1..token.len() - 1).unwrap_or_default();
        let decoded: Option<String> = name
            .contains(&b'\\')
            .then(|| serde_json::from_slice(token).ok())
            .flatten();
        let name_is = decoded.as_ref().map_or(name, |name| name.as_bytes());
        let is_named = |index: usize| {
            let field = fields.get(index);
            field.is_some_and(|field| field.name().as_bytes() == name_is)
        };
        let found = match is_named(*next) {
            true => Some(*next),
            false => self.places.find(fields, name_is),
        };
        self.name = name;
        self.kind = found.and_then(|index| {
            *next = index + 1;
            wanted(fields[index].data_type())
        });
    }
}

/// `kind`, if a value of it holds numbers that are to be checked.
fn wanted(kind: &DataType) -> Option<&DataType> {
    let is_wanted = match kind {
        DataType::Struct(fields) => fields
            .iter()
            .any(|field| wanted(field.data_type()).is_some()),
        kind if kind.is_integer() => true,
        DataType::Timestamp(_, _)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_) => true,
        kind => matches!(inside_of(kind), Some(Open::Values(value)) if wanted(value).is_some()),
    };
    is_wanted.then_some(kind)
}

/// What an object or list of type `kind` holds.
fn inside_of(kind: &DataType) -> Option<Open<'_>> {
    match kind {
        DataType::Struct(fields) => Some(Open::Fields(fields, 0)),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(Open::Values(item.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.get(1).map(|value| Open::Values(value.data_type())),
            _ => None,
        },
        _ => None,
    }
}

/// Makes sure that the number `token` is a value of type `kind`.
fn require_whole(kind: &DataType, token: &[u8], name: &[u8]) -> Result<(), String> {
    let is_plain = !token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if is_plain && token.len() <= SHORT_BYTES {
        return Ok(());
    }
    let text = String::from_utf8_lossy(token);
    let refused = |why: &str| {
        let name = String::from_utf8_lossy(name);
        Err(format!(
            "the column `{name}`: the number {text} {why} {kind}"
        ))
    };
    let DataType::Timestamp(unit, _) = kind else {
        return match whole(&text) {
            // The decoder knows the range of each type, and reads plain digits exactly.
            _ if is_plain => Ok(()),
            Some(value) if is_exact(value) => Ok(()),
            Some(_) => refused("must be written with all its digits to be"),
            None => refused("is no whole number, as is wanted for"),
        };
    };
    match whole(&text) {
        None => refused("is no whole number, as is wanted for"),
        Some(value) if !is_plain && !is_exact(value) => {
            refused("must be written with all its digits to be")
        }
        Some(value) => match i64::try_from(value) {
            Ok(value) if is_in_calendar(value, *unit) => Ok(()),
            _ => refused("is out of the range of"),
        },
    }
}

/// Whether a number with a point or an exponent is read as it is: the decoder reads it as f64.
fn is_exact(value: i128) -> bool {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "this asks whether any is lost"
    )]
    let read = value as f64 as i128;
    read == value
}

/// The whole number that `text` is, if it is one of up to 38 digits.
fn whole(text: &str) -> Option<i128> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let after = after.trim_end_matches('0');
    let value: i128 = format!("{before}{after}").parse().ok()?;
    if value == 0 {
        return Some(0);
    }
    let shift = exponent.checked_sub(i32::try_from(after.len()).ok()?)?;
    let scale = 10_i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 {
        value.checked_mul(scale)
    } else {
        (value % scale == 0).then_some(value / scale)
    }
}

/// How much of `text` belongs to a string that began before it, with its quote.
fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text[at..]
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\'))
    {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at = (at + 1).min(text.len());
    }
    text.len()
}

fn number_length(text: &[u8]) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    text.iter()
        .position(|byte| !is_part(byte))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema, TimeUnit};

    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let deep = vec![
            Field::new("id", DataType::Float64, true),
            Field::new("n", DataType::Int8, true),
        ];
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("x", DataType::Float64, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Millisecond, None), true),
            Field::new_list("list", Field::new("item", DataType::Int32, true), true),
            Field::new("deep", DataType::Struct(deep.into()), true),
        ]);
        WholeNumbers::new(&Arc::new(schema))
            .unwrap()
            .check(text.as_bytes())
    }

    #[test]
    fn whole_numbers_pass_however_they_are_written() {
        for text in [
            r#"{"id":1e3,"x":1.5,"at":-1.0}"#,
            r#"{"x":0.1,"id":9223372036854775807,"s":"1.5","id":30e-1}"#,
            r#"{"other":{"id":1.5,"list":[1.5]},"list":[1,2.0],"deep":{"id":1.5,"n":1}}"#,
            r#"{"a\"b":1.5,"list":[[1.5],1],"other":[{"id":1.5}],"id":-0.0}"#,
            r#"{"at":8210266876799999}"#,
            "nonsense 1.5",
            "",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_number_that_would_be_changed_is_named_with_its_column() {
        for (text, number, column) in [
            (r#"{"id":3.7}"#, "3.7", "id"),
            (r#"{"x":1.5,"id":1e-1}"#, "1e-1", "id"),
            (r#"{"\u0069d":-0.5}"#, "-0.5", r"\u0069d"),
            (r#"{"id":9007199254740993.0}"#, "9007199254740993.0", "id"),
            (r#"{"at":1700000000.9}"#, "1700000000.9", "at"),
            (r#"{"at":9000000000000000000}"#, "9000000000000000000", "at"),
            (r#"{"at":1e30}"#, "1e30", "at"),
            (r#"{"list":[{"z":[1]},1,2.5]}"#, "2.5", "list"),
            (r#"{"deep":{"id":1.5,"o":{"n":1.5},"n":2.5}}"#, "2.5", "n"),
            (r#"{"other":[1.5,{}],"id":4.5}"#, "4.5", "id"),
        ] {
            let reason = check(text).unwrap_err();
            let place = format!("the column `{column}`: the number {number} ");
            assert!(reason.contains(&place), "{text}: {reason}");
        }
    }

    #[test]
    fn fields_of_many_are_found_in_any_order_and_at_any_depth() {
        let many = |kind: DataType| -> Vec<Field> {
            let names = (0..3 * FEW_FIELDS).map(|n| format!("f{n}"));
            names
                .map(|name| Field::new(name, kind.clone(), true))
                .collect()
        };
        let deep = Field::new_struct("deep", many(DataType::Int64), true);
        let mut columns = many(DataType::Int32);
        columns.push(Field::new_list("list", deep.with_name("item"), true));
        let numbers = WholeNumbers::new(&Arc::new(Schema::new(columns))).unwrap();
        for text in [
            r#"{"f40":1.5,"f3":1}"#,
            r#"{"none":0.5,"f40":1,"f3":1.5}"#,
            r#"{"list":[{"f9":1,"none":0.5},{"f8":1.5}],"f3":1}"#,
        ] {
            assert!(numbers.check(text.as_bytes()).is_err(), "{text}");
            let whole = text.replace("1.5", "1.0").replace("0.5", "0.25");
            assert_eq!(numbers.check(whole.as_bytes()), Ok(()), "{whole}");
        }
        // A row of very many other fields takes no longer for all that there are.
        let others = (0..100_000).map(|n| format!("\"other{n}\":1.5,"));
        let text = format!("{{{}\"f1\":1}}", others.collect::<String>());
        assert_eq!(numbers.check(text.as_bytes()), Ok(()));
    }
}
