//! How rows of delimited values are written.

use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{Schema, SchemaRef};
use regex::Regex;

use crate::connect::ConnectError;
use crate::connect::text::lines::Marks;

/// The marks of a CSV file.
#[derive(Clone, Debug)]
pub(crate) struct Dialect {
    /// Whether the first row names the columns.
    pub(crate) has_header: bool,
    pub(crate) marks: Marks,
    null: Regex,
}

impl Dialect {
    /// The dialect that the options of these names ask for.
    pub(crate) fn new(
        has_header: bool,
        delimiter: &str,
        quote: &str,
        null_values: &[String],
    ) -> Result<Self, ConnectError> {
        let (delimiter, quote) = marks(delimiter, quote)?;
        let values: Vec<_> = null_values
            .iter()
            .map(|value| regex::escape(value))
            .collect();
        let pattern = match &values[..] {
            // Matches nothing: there are no nulls.
            [] => "[^\\s\\S]".to_owned(),
            values => format!("^(?:{})$", values.join("|")),
        };
        let null = Regex::new(&pattern)
            .map_err(|error| ConnectError::option("null_values", error.to_string()))?;
        Ok(Self {
            has_header,
            marks: Marks {
                quote,
                delimiter,
                hold_line_ends: true,
            },
            null,
        })
    }

    /// The columns of `text`, which begins with a header if the dialect has one, with the
    /// types that its rows tell.
    pub(crate) fn infer(&self, text: &[u8]) -> Result<Schema, String> {
        let format = Format::default()
            .with_header(self.has_header)
            .with_delimiter(self.marks.delimiter)
            .with_quote(self.marks.quote)
            .with_null_regex(self.null.clone());
        let inferred = format.infer_schema(text, None);
        inferred
            .map(|(schema, _)| schema)
            .map_err(|error| error.to_string())
    }

    /// A decoder of up to `rows` rows of `schema`, of which it gives the columns `columns`.
    pub(crate) fn decoder(&self, schema: &SchemaRef, columns: &[usize], rows: usize) -> Decoder {
        ReaderBuilder::new(schema.clone())
            .with_header(false)
            .with_delimiter(self.marks.delimiter)
            .with_quote(self.marks.quote)
            .with_null_regex(self.null.clone())
            .with_projection(columns.to_vec())
            .with_batch_size(rows)
            .build_decoder()
    }
}

/// The delimiter and the quote that the options of these names ask for.
pub(super) fn marks(delimiter: &str, quote: &str) -> Result<(u8, u8), ConnectError> {
    let (delimiter, quote) = (mark("delimiter", delimiter)?, mark("quote", quote)?);
    if delimiter == quote {
        return Err(ConnectError::option("quote", "is the delimiter too"));
    }
    Ok((delimiter, quote))
}

/// The delimiter where none is given.
pub(super) fn comma() -> String {
    ",".to_owned()
}

/// The quote where none is given.
pub(super) fn double_quote() -> String {
    "\"".to_owned()
}

/// An option that is one ASCII character, and no end of a line.
fn mark(option: &'static str, text: &str) -> Result<u8, ConnectError> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(*byte),
        _ => {
            let reason = format!("`{text}` is not one ASCII character");
            Err(ConnectError::option(option, reason))
        }
    }
}
