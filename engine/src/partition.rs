//! Which subtask a record goes to: by key, or in turn.
//!
//! A key's bytes are hashed with 64-bit FNV-1a; the hash gives one of 128 key groups; each
//! subtask owns a contiguous range of groups. So keyed state moves by whole groups when the
//! parallelism changes. Integer keys are hashed as 8 little-endian bytes on every host.

mod fnv;
mod groups;
mod key;
mod wide;

pub use fnv::{Fnv1a, fnv1a64, key_hash_i64, key_hash_parts};
pub use key::Key;
pub(crate) use wide::extend_with_key_groups;

pub use groups::{
    Parallelism, ParallelismRefused, key_group, key_group_of_hash, key_group_range, subtask_of,
};

/// Spreads records over outputs in turn, beginning with the first.
#[derive(Clone, Debug, Default)]
pub struct Rebalance {
    next: u64,
}

impl Rebalance {
    /// A counter that begins with output 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The output of the next record out of `outputs`. The counter goes on where the number
    /// of outputs changes.
    ///
    /// # Panics
    ///
    /// Panics where there are no outputs.
    pub fn next_output(&mut self, outputs: usize) -> usize {
        assert!(outputs > 0, "a record can't be sent to one of no outputs");
        let output = self.next % outputs as u64;
        self.next = self.next.wrapping_add(1);
        output as usize
    }
}

#[cfg(test)]
mod tests;
