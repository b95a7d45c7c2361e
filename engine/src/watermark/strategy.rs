//! How a source's watermark follows from its records.

/// The number of a split of a source: a file, a row group, a partition of a topic.
pub type SplitId = u64;

/// How a source's watermark follows from the event times of its records.
///
/// By default one watermark is kept over all records, and the stream is never idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatermarkStrategy {
    pub(super) out_of_orderness_ms: u64,
    pub(super) per_split: bool,
    pub(super) idle_after_ms: Option<u64>,
}

impl WatermarkStrategy {
    /// The watermark is the highest event time seen: event times never decrease.
    pub const fn monotonic() -> Self {
        Self::bounded_out_of_orderness(0)
    }

    /// The watermark stays this many milliseconds behind the highest event time seen.
    pub const fn bounded_out_of_orderness(bound_ms: u64) -> Self {
        Self {
            out_of_orderness_ms: bound_ms,
            per_split: false,
            idle_after_ms: None,
        }
    }

    /// Keeps a watermark for each split: the source's is the lowest of the open splits and
    /// of those that nobody has opened yet.
    pub const fn per_split(mut self) -> Self {
        self.per_split = true;
        self
    }

    /// After this many milliseconds of processing time without a record a split holds
    /// nothing back, and a source whose splits are all quiet says that it is idle.
    pub const fn idle_after(mut self, quiet_ms: u64) -> Self {
        self.idle_after_ms = Some(quiet_ms);
        self
    }
}
