//! What becomes of rows that an operator does not simply pass on.

/// Rows that an operator treats apart from others, counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows that came too late. They went to the late side output, or nowhere if there is none.
    pub late_rows: u64,
    /// Rows that came after a result to which they belong, and were taken in because they came
    /// within the allowed lateness.
    pub accepted_late_rows: u64,
    /// Rows without an event time, where one is needed. They went where late rows go.
    pub untimed_rows: u64,
    /// Rows that were left out because one of the same key was there before.
    pub duplicate_rows: u64,
    /// Bytes of rows that were put aside on the disk because there was no room in memory.
    pub spilled_bytes: u64,
}

impl RowCounts {
    /// Adds those of another subtask.
    pub fn add(&mut self, other: &Self) {
        self.late_rows += other.late_rows;
        self.accepted_late_rows += other.accepted_late_rows;
        self.untimed_rows += other.untimed_rows;
        self.duplicate_rows += other.duplicate_rows;
        self.spilled_bytes += other.spilled_bytes;
    }
}
