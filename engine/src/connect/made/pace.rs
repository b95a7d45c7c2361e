//! How many rows a generating source may have made by now.

use crate::clock::ProcessingTime;

/// Paces one subtask of a generating source by processing time.
///
/// The rate is kept over the whole run: what was missed while the output was full is made
/// up for.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Rows per second of all subtasks together; 0 is as fast as possible.
    rate: u64,
    index: u64,
    parallelism: u64,
    started: Option<ProcessingTime>,
}

impl Pace {
    pub(crate) const fn new(rate: u64) -> Self {
        Self {
            rate,
            index: 0,
            parallelism: 1,
            started: None,
        }
    }

    /// The pace of one of several subtasks, whose rows take turns.
    pub(crate) fn share(&mut self, index: u32, parallelism: u32) {
        self.index = u64::from(index);
        self.parallelism = u64::from(parallelism);
    }

    /// How many rows this subtask may have made at `now`. The first call starts the clock.
    pub(crate) fn due(&mut self, now: ProcessingTime) -> u64 {
        let started = *self.started.get_or_insert(now);
        if self.rate == 0 {
            return u64::MAX;
        }
        let elapsed_ms = u128::from(now.saturating_sub(started).max(0).cast_unsigned());
        // The row with number n of all is due at n / rate seconds.
        let all = elapsed_ms * u128::from(self.rate) / 1000 + 1;
        let mine =
            (all + u128::from(self.parallelism - 1 - self.index)) / u128::from(self.parallelism);
        u64::try_from(mine).unwrap_or(u64::MAX)
    }

    /// When this subtask may make another row, having made `made`. Not before `due` was asked.
    pub(crate) fn next_at(&self, made: u64) -> ProcessingTime {
        let number = u128::from(made) * u128::from(self.parallelism) + u128::from(self.index);
        let after_ms = (number * 1000).div_ceil(u128::from(self.rate.max(1)));
        let after_ms = i64::try_from(after_ms).unwrap_or(i64::MAX);
        self.started.unwrap_or_default().saturating_add(after_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtasks_make_together_what_the_rate_says() {
        for (rate, parallelism) in [(1, 1), (10, 3), (999, 4), (1_000_000, 2)] {
            let mut paces: Vec<_> = (0..parallelism)
                .map(|index| {
                    let mut pace = Pace::new(rate);
                    pace.share(index, parallelism);
                    pace.due(50);
                    pace
                })
                .collect();
            for elapsed_ms in [0, 1, 999, 1000, 12_345] {
                let due: u64 = paces.iter_mut().map(|pace| pace.due(50 + elapsed_ms)).sum();
                assert_eq!(due, rate * elapsed_ms.cast_unsigned() / 1000 + 1);
            }
        }
    }

    #[test]
    fn the_next_row_is_due_when_it_is_said_to_be_and_not_before() {
        for rate in [1, 7, 1000, 4321] {
            let mut pace = Pace::new(rate);
            pace.share(1, 3);
            pace.due(0);
            for made in [0, 1, 5, 100] {
                let at = pace.next_at(made);
                assert!(pace.due(at) > made);
                assert!(at == 0 || pace.due(at - 1) <= made);
            }
        }
    }
}
