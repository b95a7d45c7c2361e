//! How an aggregate is asked for.

/// What an aggregate computes. All but [`AggregateKind::Count`] leave nulls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// The number of rows; int64.
    Count,
    /// The number of values that are not null; int64.
    CountColumn,
    /// The sum: int64 of integers (uint64 of uint64), float64 of floats; null without a
    /// value. Integers are summed in 128 bits, so only a result that does not fit fails.
    Sum,
    /// The least value, with the type of the column; null without a value.
    Min,
    /// The greatest value, with the type of the column; null without a value.
    Max,
    /// The mean: float64; null without a value. That of integers is the exact sum divided
    /// once, so it does not depend on the order of the rows.
    Mean,
}

/// One aggregate of an operator's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateSpec {
    /// What to compute.
    pub kind: AggregateKind,
    /// The position of the column to aggregate; [`AggregateKind::Count`] needs none.
    pub column: Option<usize>,
    /// The name of the output column.
    pub name: String,
    /// The position of a boolean column that says which rows to aggregate: those where it
    /// is true. Without it, all.
    pub filter: Option<usize>,
}

impl AggregateSpec {
    /// The number of rows.
    pub fn count(name: impl Into<String>) -> Self {
        Self {
            kind: AggregateKind::Count,
            column: None,
            name: name.into(),
            filter: None,
        }
    }

    /// `kind` of the column at `column`.
    pub fn of(kind: AggregateKind, column: usize, name: impl Into<String>) -> Self {
        Self {
            kind,
            column: Some(column),
            name: name.into(),
            filter: None,
        }
    }

    /// The same over the rows where the boolean column at `filter` is true.
    pub fn filtered_by(mut self, filter: usize) -> Self {
        self.filter = Some(filter);
        self
    }
}
