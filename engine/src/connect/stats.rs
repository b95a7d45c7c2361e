//! What a connector has read or written.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// What a connector has read or written so far, over all its subtasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Rows handed on.
    pub rows: u64,
    /// Batches handed on.
    pub batches: u64,
    /// Bytes read from or written to files (compressed, where the file is).
    pub bytes: u64,
    /// Malformed rows that were left out, because `on_error = "skip"` says so.
    pub skipped_rows: u64,
    /// The sum of the hashes of all rows ([`super::checksum`]), where a sink computes it.
    pub checksum: Option<u64>,
}

impl Counters {
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.batches += other.batches;
        self.bytes += other.bytes;
        self.skipped_rows += other.skipped_rows;
        if let Some(sum) = other.checksum {
            self.checksum = Some(self.checksum.unwrap_or(0).wrapping_add(sum));
        }
    }
}

/// A handle to the counters of a connector. A clone is another handle to the same counters.
///
/// They are brought up to date once for each batch, never for each row.
#[derive(Clone, Debug, Default)]
pub struct ConnectorStats(Arc<Mutex<Counters>>);

impl ConnectorStats {
    /// The counters as they are now.
    pub fn read(&self) -> Counters {
        *self.lock()
    }

    /// Adds `delta`; for threads that may wait a moment.
    pub fn add(&self, delta: &Counters) {
        self.lock().add(delta);
    }

    /// Counts from the beginning, as nothing of what was counted has happened: what did it is
    /// done again.
    pub(crate) fn clear(&self) {
        *self.lock() = Counters::default();
    }

    /// Adds `delta` and clears it, unless someone else holds the counters at this moment;
    /// for workers, which never wait.
    pub(crate) fn try_add(&self, delta: &mut Counters) {
        let mut counters = match self.0.try_lock() {
            Ok(counters) => counters,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        counters.add(delta);
        *delta = Counters::default();
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        // Counters are plain numbers: a panic elsewhere cannot leave them half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
