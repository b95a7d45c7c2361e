//! The first row of each key.

use std::hash::Hash;
use std::marker::PhantomData;

use crate::batch::Rows;
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, RowCounts, SideTag};
use crate::operators::late::emit_late_rows;
use crate::operators::state::{FirstSeen, Seen};

/// Keeps the first row of each key; follows the rules of
/// [`columnar::Deduplicate`](crate::operators::columnar::Deduplicate).
///
/// ```
/// use ringway::operators::rows::Deduplicate;
///
/// let a_day = Some(86_400_000);
/// let first = Deduplicate::new(|order: &u64| *order, a_day, None);
/// # let _ = first;
/// ```
pub struct Deduplicate<K, T, Key> {
    key: Key,
    seen: FirstSeen<K>,
    late: Option<SideTag<Rows<T>>>,
    counts: RowCounts,
    rows: PhantomData<fn(T)>,
}

impl<K, T, Key> Deduplicate<K, T, Key>
where
    K: Eq + Hash + Clone,
    Key: FnMut(&T) -> K,
{
    /// An operator that remembers each `key` for `ttl_ms` of event time, or for ever.
    pub fn new(key: Key, ttl_ms: Option<u64>, late: Option<SideTag<Rows<T>>>) -> Self {
        Self {
            key,
            seen: FirstSeen::new(ttl_ms),
            late,
            counts: RowCounts::default(),
            rows: PhantomData,
        }
    }
}

impl<K, T, Key> Operator<Rows<T>, Rows<T>> for Deduplicate<K, T, Key>
where
    K: Eq + Hash + Clone + Send,
    T: Clone + Send + 'static,
    Key: FnMut(&T) -> K + Send,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        let (mut first, mut late) = (Rows::new(), Rows::new());
        for row in batch {
            let key = (self.key)(&row.value);
            match self.seen.see(&key, row.event_time) {
                Seen::First => first.push(row),
                Seen::Again => self.counts.duplicate_rows += 1,
                Seen::Late => late.push(row),
            }
        }
        emit_late_rows(late, self.late, &mut self.counts, out);
        out.emit(first);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.seen.advance(watermark.timestamp);
        }
        out.watermark(watermark);
        self.resume(out)
    }

    fn resume(&mut self, _out: &mut Emitter<'_, Rows<T>>) -> Result<Progress, OperatorError> {
        Ok(match self.seen.forget_some(&mut |_| {}) {
            true => Progress::Done,
            false => Progress::More,
        })
    }

    fn counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::operators::testing::{Harness, Random};

    const LATE: SideTag<Rows<u64>> = SideTag::new(1);

    #[test]
    fn the_first_row_of_a_key_within_the_time_to_live_is_kept() {
        let mut random = Random::new("the_first_row_of_a_key_within_the_time_to_live_is_kept");
        for _ in 0..20 {
            let ttl_ms = random.below(30);
            let operator = Deduplicate::new(|key: &u64| *key, Some(ttl_ms), Some(LATE));
            let mut harness: Harness<_, Rows<u64>> = Harness::new(operator, 1);
            let (mut kept, mut late, mut watermark) = (Vec::<Row<u64>>::new(), 0, i64::MIN);
            let (mut around, mut duplicates) = (0, 0);
            let mut emitted = Vec::new();
            for _ in 0..300 {
                around += random.between(0, 3);
                if random.below(6) == 0 {
                    let to = Watermark {
                        timestamp: around - 10,
                        idle: random.below(2) == 0,
                    };
                    if !to.idle {
                        watermark = watermark.max(to.timestamp);
                    }
                    harness.watermark::<Rows<u64>>(to);
                    continue;
                }
                let row = Row {
                    value: random.below(4),
                    event_time: (random.below(9) > 0).then(|| around + random.between(-15, 9)),
                };
                match row.event_time.filter(|time| *time >= watermark) {
                    None => late += 1,
                    Some(time) => {
                        let of_key = |kept: &&Row<u64>| kept.value == row.value;
                        let last = kept
                            .iter()
                            .rev()
                            .find(of_key)
                            .and_then(|row| row.event_time);
                        match last.is_some_and(|last| time < last + ttl_ms as i64) {
                            true => duplicates += 1,
                            false => kept.push(row.clone()),
                        }
                    }
                }
                harness.push(Rows::from(vec![row]));
                emitted.extend(harness.take_data().into_iter().flatten());
            }
            assert_eq!(emitted, kept);
            assert_eq!(harness.counts().duplicate_rows, duplicates);
            assert_eq!(harness.dropped(), late);
            assert_eq!(harness.take_side(LATE).len() as u64, late);
            harness.watermark::<Rows<u64>>(Watermark::MAX);
            assert_eq!(harness.operator.seen.len(), 0, "all keys are forgotten");
        }
    }

    #[test]
    fn without_a_time_to_live_neither_times_nor_watermarks_matter() {
        let operator = Deduplicate::new(|key: &u64| *key, None, None);
        let mut harness: Harness<_, Rows<u64>> = Harness::new(operator, 1);
        harness.push(Rows::from(vec![Row::untimed(1), Row::at(5, 2)]));
        harness.watermark::<Rows<u64>>(Watermark::active(100));
        harness.push(Rows::from(vec![Row::untimed(1), Row::at(5, 3)]));
        let values: Vec<u64> = harness
            .take_data()
            .into_iter()
            .flatten()
            .map(|row| row.value)
            .collect();
        assert_eq!(values, [1, 2, 3]);
    }
}
