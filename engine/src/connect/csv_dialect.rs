//! How rows of delimited values are written.

use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{Schema, SchemaRef};
use regex::Regex;

use super::ConnectError;
use super::lines::Quoting;

/// The marks of a CSV file.
#[derive(Clone, Debug)]
pub(super) struct Dialect {
    /// Whether the first row names the columns.
    pub(super) has_header: bool,
    pub(super) delimiter: u8,
    pub(super) quote: u8,
    null: Regex,
}

impl Dialect {
    /// The dialect that the options of these names ask for.
    pub(super) fn new(
        has_header: bool,
        delimiter: &str,
        quote: &str,
        null_values: &[String],
    ) -> Result<Self, ConnectError> {
        let (delimiter, quote) = (mark("delimiter", delimiter)?, mark("quote", quote)?);
        if delimiter == quote {
            return Err(ConnectError::option("quote", "is the delimiter too"));
        }
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
            delimiter,
            quote,
            null,
        })
    }

    /// What holds a line end as part of a value.
    pub(super) const fn quoting(&self) -> Quoting {
        Quoting {
            quote: self.quote,
            delimiter: self.delimiter,
        }
    }

    /// The columns of `text`, which begins with a header if the dialect has one, with the
    /// types that its rows tell.
    pub(super) fn infer(&self, text: &[u8]) -> Result<Schema, String> {
        let format = Format::default()
            .with_header(self.has_header)
            .with_delimiter(self.delimiter)
            .with_quote(self.quote)
            .with_null_regex(self.null.clone());
        let inferred = format.infer_schema(text, None);
        inferred
            .map(|(schema, _)| schema)
            .map_err(|error| error.to_string())
    }

    /// A decoder of up to `rows` rows of `schema`, of which it gives the columns `columns`.
    pub(super) fn decoder(&self, schema: &SchemaRef, columns: &[usize], rows: usize) -> Decoder {
        ReaderBuilder::new(schema.clone())
            .with_header(false)
            .with_delimiter(self.delimiter)
            .with_quote(self.quote)
            .with_null_regex(self.null.clone())
            .with_projection(columns.to_vec())
            .with_batch_size(rows)
            .build_decoder()
    }
}

/// An option that is one ASCII character, and no end of a line.
pub(super) fn mark(option: &'static str, text: &str) -> Result<u8, ConnectError> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() && !b"\r\n".contains(byte) => Ok(*byte),
        _ => {
            let reason = format!("`{text}` is not one ASCII character");
            Err(ConnectError::option(option, reason))
        }
    }
}
