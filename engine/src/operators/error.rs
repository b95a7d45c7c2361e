//! Why an operator cannot be made from what it was told.

use arrow::datatypes::DataType;

/// A request that does not fit the data; nothing has run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Column 0 is not the event time.
    #[error("column 0 must be `event_time` of type Int64, and is {found}: project it so")]
    EventTime {
        /// Name and type of column 0, if there is one.
        found: String,
    },
    /// The input has no such column.
    #[error("{what} names column {column} of an input of {columns} columns: columns count from 0")]
    NoColumn {
        /// What names the column.
        what: String,
        /// The column.
        column: usize,
        /// Columns that there are.
        columns: usize,
    },
    /// An aggregate other than a count of rows needs a column.
    #[error("the aggregate `{name}` has no column to aggregate: name one")]
    NoArgument {
        /// The output name of the aggregate.
        name: String,
    },
    /// The column has a type that cannot be used so.
    #[error("{what} cannot use column {column} of type {data_type}: cast it first")]
    ColumnType {
        /// What would use it.
        what: String,
        /// The column.
        column: usize,
        /// Its type.
        data_type: DataType,
    },
    /// A window without length.
    #[error("a window's size and slide must be at least 1 ms, and are {size_ms} and {slide_ms}")]
    WindowSize {
        /// The size, in milliseconds.
        size_ms: i64,
        /// The slide, in milliseconds.
        slide_ms: i64,
    },
    /// A row would be in so many windows that no machine keeps up.
    #[error(
        "windows of {size_ms} ms that slide by {slide_ms} ms put each row into more than \
         {windows_max} windows: slide by more"
    )]
    WindowOverlap {
        /// The size, in milliseconds.
        size_ms: i64,
        /// The slide, in milliseconds.
        slide_ms: i64,
        /// The most windows that a row may be in.
        windows_max: i64,
    },
    /// Windows with gaps between them.
    #[error(
        "windows of {size_ms} ms that slide by {slide_ms} ms leave gaps: \
         slide by at most the size, or filter the rows first"
    )]
    WindowGap {
        /// The size, in milliseconds.
        size_ms: i64,
        /// The slide, in milliseconds.
        slide_ms: i64,
    },
    /// No time is within the bounds of an interval join.
    #[error("no time is from {lower_ms} ms to {upper_ms} ms later: swap the bounds")]
    JoinBounds {
        /// The lower bound, in milliseconds.
        lower_ms: i64,
        /// The upper bound, in milliseconds.
        upper_ms: i64,
    },
    /// A join needs as many key columns on one side as on the other, and one at least.
    #[error(
        "a join by {left} key columns of the left side and {right} of the right: \
         name as many, at least one"
    )]
    JoinKeys {
        /// Key columns of the left side.
        left: usize,
        /// Key columns of the right side.
        right: usize,
    },
    /// A key column has another type on the one side than on the other.
    #[error(
        "the join key of column {left_column} ({left}) and column {right_column} ({right}) \
         has two types: cast one"
    )]
    JoinKeyTypes {
        /// The column of the left side.
        left_column: usize,
        /// Its type.
        left: DataType,
        /// The column of the right side.
        right_column: usize,
        /// Its type.
        right: DataType,
    },
    /// Rows cannot be sent to the subtask of their key.
    #[error("the key cannot be: {message}")]
    Key {
        /// Why.
        message: String,
    },
    /// A sort by nothing.
    #[error("a sort needs a column to order by: name one")]
    NoOrder,
    /// A window by count without rows.
    #[error("a window by count must have at least 1 row")]
    CountWindow,
    /// A session without a gap.
    #[error("the gap between sessions must be at least 1 ms, and is {gap_ms}")]
    SessionGap {
        /// The gap, in milliseconds.
        gap_ms: i64,
    },
}
