//! What can go wrong between rows and columns.

use arrow::error::ArrowError;

use super::codec::CodecError;

/// Why rows did not become a record batch, or a record batch did not become rows.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The schema is another one; this is the first column that differs.
    #[error(
        "column {column} is {found} where {expected} is expected: \
         both ends of an edge must use the same type and batcher"
    )]
    Schema {
        /// The position of the column.
        column: usize,
        /// Name, type and nullability that the batcher's schema has there.
        expected: String,
        /// Name, type and nullability that the batch has there.
        found: String,
    },
    /// A column that may not hold nulls holds one.
    #[error("row {row} of column {column} is null, and that column may not hold nulls")]
    Null {
        /// The position of the column.
        column: usize,
        /// The first such row.
        row: usize,
    },
    /// Within a nested column, something that may not be null is.
    #[error("row {row} of column {column} holds a null at `{field}`, where none may be")]
    NullWithin {
        /// The position of the column.
        column: usize,
        /// The first such row.
        row: usize,
        /// The names that lead to the null, joined by dots, the column's own first.
        field: String,
    },
    /// The values of one column take more bytes than its offsets can count.
    #[error(
        "the values of one column exceed {bytes_max} bytes at row {row}: \
         build a batch of the rows before it, and go on from there"
    )]
    TooLarge {
        /// The first row that does not fit.
        row: usize,
        /// Bytes that a column can hold.
        bytes_max: usize,
    },
    /// A value can't be encoded, or bytes are no encoding of a value.
    #[error("row {row}: {source}")]
    Codec {
        /// The row of the value.
        row: usize,
        /// What is wrong with it.
        source: CodecError,
    },
    /// Arrow refused what it was given.
    #[error("arrow: {0}")]
    Arrow(#[from] ArrowError),
}
