//! Which rows a subtask has still to make.

use serde::{Deserialize, Serialize};

use crate::connect::ConnectError;
use crate::connect::saved::Saved;
use crate::limits::PARALLELISM_MAX;

/// The rows of one subtask that are left: every `stride`-th from `next` on, but for those that
/// were made before a checkpoint at which there were more or fewer subtasks.
#[derive(Clone, Debug)]
pub(super) struct Left {
    next: u64,
    index: u64,
    stride: u64,
    /// The number after the last row.
    end: u64,
    /// What was made, by as many subtasks at a time.
    made: Vec<MadeBy>,
}

/// Rows that were made: those below `below` whose number has this remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Made {
    stride: u64,
    remainder: u64,
    below: u64,
}

/// Rows that so many subtasks made: those of each remainder below a number of its own.
#[derive(Clone, Debug)]
struct MadeBy {
    below: Vec<u64>,
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

    /// The number of the next row.
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
            self.next = self.next.saturating_add(self.stride);
            self.skip_made();
        }
        numbers
    }

    /// What is left, for a checkpoint.
    pub(super) fn save(&self) -> SavedLeft {
        let made = self.made.iter().flat_map(MadeBy::all);
        SavedLeft {
            next: self.next,
            made: made.filter(|made| made.below > self.next).collect(),
        }
    }

    /// Leaves what the subtasks left that saved `saved`. One that is missing had made all.
    pub(super) fn restore(&mut self, saved: &[Saved<SavedLeft>]) -> Result<(), ConnectError> {
        let Some(first) = saved.first() else {
            self.next = self.end;
            return Ok(());
        };
        let subtasks = first.parallelism;
        let made = saved.iter().flat_map(|saved| &saved.value.made);
        if subtasks > PARALLELISM_MAX || !made.clone().all(Made::can_be) {
            let reason = "it is of more subtasks than there can be".to_owned();
            return Err(ConnectError::State { reason });
        }
        // A row that its subtask has passed was made, by that or by another before.
        let mut below = vec![self.end; subtasks as usize];
        for saved in saved {
            below[saved.index as usize] = saved.value.next;
        }
        // Below that, all were made.
        let least = below.iter().copied().min().unwrap_or(0);
        self.made = vec![MadeBy { below }];
        made.for_each(|made| self.add_made(*made));
        self.next = self.first_from(least);
        self.skip_made();
        Ok(())
    }

    fn add_made(&mut self, made: Made) {
        let by = self.made.iter_mut().find(|by| by.stride() == made.stride);
        let by = match by {
            Some(by) => by,
            None => {
                let below = vec![0; made.stride as usize];
                self.made.push_mut(MadeBy { below })
            }
        };
        let below = &mut by.below[made.remainder as usize];
        *below = made.below.max(*below);
    }

    /// The first row of this subtask that is not before `number`.
    const fn first_from(&self, number: u64) -> u64 {
        let steps = number.saturating_sub(self.index).div_ceil(self.stride);
        self.index.saturating_add(steps.saturating_mul(self.stride))
    }

    /// Goes on to the first row that was not made. There may be billions before it, so they are
    /// not counted through: which rows were made repeats itself up to the next number below
    /// which one of the subtasks had made its rows.
    fn skip_made(&mut self) {
        while !self.is_over() && self.is_made(self.next) {
            let next = self.next;
            self.made.retain(|by| by.first_below_after(next).is_some());
            let turns = self.made.iter().filter_map(|by| by.first_below_after(next));
            let turn = turns.min().unwrap_or(next);
            for _ in 0..self.period() {
                if self.next >= turn {
                    break;
                }
                if !self.is_made(self.next) {
                    return;
                }
                self.next = self.next.saturating_add(self.stride);
            }
            self.next = self.next.max(self.first_from(turn));
        }
    }

    fn is_made(&self, number: u64) -> bool {
        self.made.iter().any(|by| by.contains(number))
    }

    /// After how many of this subtask's rows the same ones were made again.
    fn period(&self) -> u64 {
        self.made.iter().fold(1, |period: u64, by| {
            let own = by.stride() / gcd(by.stride(), self.stride);
            period.saturating_mul(own / gcd(own, period))
        })
    }
}

impl Made {
    const fn can_be(&self) -> bool {
        self.remainder < self.stride && self.stride <= PARALLELISM_MAX as u64
    }
}

impl MadeBy {
    const fn stride(&self) -> u64 {
        self.below.len() as u64
    }

    fn contains(&self, number: u64) -> bool {
        self.below[(number % self.stride()) as usize] > number
    }

    /// The least of the numbers after `number` below which rows were made.
    fn first_below_after(&self, number: u64) -> Option<u64> {
        let after = self.below.iter().filter(|below| **below > number);
        after.min().copied()
    }

    fn all(&self) -> impl Iterator<Item = Made> {
        let stride = self.stride();
        (0..).zip(&self.below).map(move |(remainder, below)| Made {
            stride,
            remainder,
            below: *below,
        })
    }
}

/// The greatest number that divides both.
const fn gcd(one: u64, other: u64) -> u64 {
    match other {
        0 => one,
        other => gcd(other, one % other),
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
                    left.restore(saved).unwrap();
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
        left.restore(&[]).unwrap();
        assert!(left.is_over());
    }

    fn saved(place: (u32, u32), next: u64, made: &[Made]) -> Saved<SavedLeft> {
        let made = made.to_vec();
        saved_of(place, SavedLeft { next, made })
    }

    #[test]
    fn billions_of_rows_that_were_made_are_not_counted_through() {
        const MANY: u64 = 1 << 60;
        let made = [Made {
            stride: 3,
            remainder: 1,
            below: MANY - 500,
        }];
        // One was far ahead of the other, which had taken over rows that a third of three had made.
        let saved = [saved((0, 2), MANY, &made), saved((1, 2), 7, &made)];
        for (index, parallelism) in [(0, 4), (2, 4), (0, 6), (4, 6), (10, 12)] {
            let mut left = Left::all(index, parallelism, None);
            left.restore(&saved).unwrap();
            let first = left.take(1)[0];
            assert!((MANY..MANY + 12).contains(&first), "{index}: {first}");
            assert_eq!(first % u64::from(parallelism), u64::from(index));
        }
        // Of those that are left only a few are near.
        let mut left = Left::all(1, 4, None);
        left.restore(&saved).unwrap();
        assert_eq!(left.take(4), [9, 17, 21, 29]);
    }

    #[test]
    fn state_of_subtasks_that_cannot_be_is_refused() {
        for (stride, remainder) in [(0, 0), (3, 3), (u64::MAX, 1)] {
            let below = 5;
            let made = [Made {
                stride,
                remainder,
                below,
            }];
            let mut left = Left::all(0, 1, None);
            assert!(left.restore(&[saved((0, 1), 7, &made)]).is_err());
        }
        let mut left = Left::all(0, 1, None);
        assert!(left.restore(&[saved((0, u32::MAX), 7, &[])]).is_err());
    }
}
