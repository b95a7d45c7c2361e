//! Which rows a subtask has still to make.

use serde::{Deserialize, Serialize};

use crate::connect::saved::Saved;

/// The rows of one subtask that are left: every `stride`-th from `next` on, but for those that
/// were made before a checkpoint at which there were more or fewer subtasks.
#[derive(Clone, Debug)]
pub(super) struct Left {
    next: u64,
    index: u64,
    stride: u64,
    /// The number after the last row.
    end: u64,
    made: Vec<Made>,
}

/// Rows that were made: those below `below` whose number has this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    stride: u64,
    remainder: u64,
    below: u64,
}

/// What one subtask saves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedLeft {
    next: u64,
    made: Vec<Made>,
}

impl Left {
    /// All rows of subtask `index` of `parallelism`, of `rows` in all.
    pub(super) fn all(index: u32, parallelism: u32, rows: Option<u64>) -> Self {
        Self {
            next: u64::from(index),
            index: u64::from(index),
            stride: u64::from(parallelism),
            end: rows.unwrap_or(u64::MAX),
            made: Vec::new(),
        }
    }

    /// The number of the next row, be it made or not.
    pub(super) const fn frontier(&self) -> u64 {
        self.next
    }

    /// Whether no row is left.
    pub(super) const fn is_over(&self) -> bool {
        self.next >= self.end
    }

    /// Whether a row was made.
    pub(super) const fn has_begun(&self) -> bool {
        self.next > self.index
    }

    /// The numbers of the next rows, at most so many.
    pub(super) fn take(&mut self, rows: usize) -> Vec<u64> {
        let mut numbers = Vec::with_capacity(rows);
        while numbers.len() < rows && !self.is_over() {
            numbers.push(self.next);
            self.advance();
        }
        numbers
    }

    /// What is left, for a checkpoint.
    pub(super) fn save(&self) -> SavedLeft {
        SavedLeft {
            next: self.next,
            made: self.made.clone(),
        }
    }

    /// Leaves what the subtasks left that saved `saved`. One that is missing had made all.
    pub(super) fn restore(&mut self, saved: &[Saved<SavedLeft>]) {
        let Some(first) = saved.first() else {
            self.next = self.end;
            return;
        };
        let stride = u64::from(first.parallelism);
        let made = (0..stride).map(|remainder| {
            let own = saved
                .iter()
                .find(|saved| u64::from(saved.index) == remainder);
            Made {
                stride,
                remainder,
                below: own.map_or(self.end, |own| own.value.next),
            }
        });
        let mut made: Vec<Made> = made.collect();
        // Below that, all were made.
        let least = made.iter().map(|made| made.below).min().unwrap_or(0);
        for earlier in saved.iter().flat_map(|saved| &saved.value.made) {
            if !made.contains(earlier) {
                made.push(*earlier);
            }
        }
        self.made = made;
        let steps = least.saturating_sub(self.index).div_ceil(self.stride);
        self.next = self.index.saturating_add(steps.saturating_mul(self.stride));
        self.skip_made();
    }

    fn advance(&mut self) {
        self.next = self.next.saturating_add(self.stride);
        self.skip_made();
    }

    fn skip_made(&mut self) {
        while !self.made.is_empty() && !self.is_over() {
            self.made.retain(|made| made.below > self.next);
            let next = self.next;
            let own = |made: &&Made| next % made.stride == made.remainder;
            let Some(made) = self.made.iter().find(own) else {
                return;
            };
            // With as many subtasks as before it is only one step to what is left.
            let steps = match made.stride {
                stride if stride == self.stride => (made.below - next).div_ceil(stride),
                _ => 1,
            };
            self.next = next.saturating_add(steps.saturating_mul(self.stride));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::saved::saved_of;

    #[test]
    fn every_row_is_made_once_however_often_the_number_of_subtasks_changes() {
        let rows = 1000;
        let mut made = Vec::new();
        let mut saved: Option<Vec<Saved<SavedLeft>>> = None;
        for (round, parallelism) in [3, 3, 2, 5, 1, 4, 4, 7].into_iter().enumerate() {
            let mut saves = Vec::new();
            for index in 0..parallelism {
                let mut left = Left::all(index, parallelism, Some(rows));
                if let Some(saved) = &saved {
                    left.restore(saved);
                }
                // Some are fast and some are slow.
                let many = match round {
                    7 => usize::MAX,
                    _ => 10 + 20 * index as usize,
                };
                for _ in 0..many {
                    let numbers = left.take(1);
                    if numbers.is_empty() {
                        break;
                    }
                    made.extend(numbers);
                }
                // Who has ended saves nothing.
                if !left.is_over() {
                    saves.push(saved_of((index, parallelism), left.save()));
                }
            }
            saved = Some(saves);
        }
        made.sort_unstable();
        assert!(made.iter().copied().eq(0..rows));
    }

    #[test]
    fn where_all_was_made_nothing_is_left() {
        let mut left = Left::all(0, 2, Some(10));
        left.restore(&[]);
        assert!(left.is_over());
    }
}
