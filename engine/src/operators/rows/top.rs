//! The foremost rows of each key.

use std::hash::Hash;
use std::marker::PhantomData;

use crate::batch::{Row, Rows};
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::Ordered;
use crate::operators::gather::{Gather, Gathered};
use crate::operators::late::set_late_rows_aside;
use crate::operators::top::{Top, TopState};
use crate::operators::window::{Window, WindowAssigner};

/// A row and its place among those of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked<K, T> {
    /// The key.
    pub key: K,
    /// The window, if the rows of each window are ranked.
    pub window: Option<Window>,
    /// The place, from 1.
    pub rank: u64,
    /// The row's value.
    pub value: T,
}

/// The `n` rows of each key that are greatest or least; follows the rules of
/// [`columnar::TopN`](crate::operators::columnar::TopN).
///
/// ```
/// use ringway::operators::rows::TopN;
/// use ringway::operators::window::WindowAssigner;
///
/// #[derive(Clone)]
/// struct Bid { auction: u64, price: i64 }
///
/// let hourly = WindowAssigner::tumbling(3_600_000, 0)?;
/// let highest = TopN::greatest(3, |bid: &Bid| bid.auction, |bid: &Bid| bid.price)
///     .by_window(hourly, None);
/// # let _ = highest;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct TopN<K, T, S, Key, By> {
    key: Key,
    by: By,
    is_descending: bool,
    state: TopState<K, S, Row<T>>,
    late: Option<SideTag<Rows<T>>>,
    current: Option<(Top<K, Row<T>>, usize)>,
    output: Rows<Ranked<K, T>>,
    advancing: Option<Watermark>,
    counts: RowCounts,
    order: PhantomData<fn() -> S>,
}

impl<K, T, S, Key, By> TopN<K, T, S, Key, By>
where
    K: Eq + Hash + Clone,
    T: Clone,
    S: Ordered,
    Key: FnMut(&T) -> K,
    By: FnMut(&T) -> S,
{
    /// The `n` rows of each `key` with the greatest `by`, of all rows so far.
    pub fn greatest(n: usize, key: Key, by: By) -> Self {
        Self::new(n, key, by, true)
    }

    /// The `n` rows of each `key` with the least `by`, of all rows so far.
    pub fn least(n: usize, key: Key, by: By) -> Self {
        Self::new(n, key, by, false)
    }

    /// The same of each window. Rows that come too late go to `late`, and are counted only when
    /// there is none.
    pub fn by_window(mut self, windows: WindowAssigner, late: Option<SideTag<Rows<T>>>) -> Self {
        self.state = self.state.by_window(windows);
        self.late = late;
        self
    }

    /// The same with every row that is equal to the last one; equal rows have the same rank.
    #[must_use]
    pub fn with_ties(mut self) -> Self {
        self.state = self.state.with_ties(|one, other| one.order(other).is_eq());
        self
    }

    fn new(rows_max: usize, key: Key, by: By, is_descending: bool) -> Self {
        Self {
            key,
            by,
            is_descending,
            state: TopState::new(rows_max, None),
            late: None,
            current: None,
            output: Rows::new(),
            advancing: None,
            counts: RowCounts::default(),
            order: PhantomData,
        }
    }

    fn add(&mut self, row: &Row<T>) {
        let key = (self.key)(&row.value);
        let by = (self.by)(&row.value);
        let is_descending = self.is_descending;
        let stands = |other: &S| match is_descending {
            true => other.order(&by).reverse(),
            false => other.order(&by),
        };
        let order = &mut self.by;
        let make = || (order(&row.value), row.clone());
        self.state
            .offer(&key, row.event_time, stands, make, &mut |_| {});
    }
}

impl<K, T, S, Key, By> Gather for TopN<K, T, S, Key, By>
where
    K: Eq + Hash + Clone + Send + 'static,
    T: Clone + Send + 'static,
    S: Ordered + Send,
    Key: FnMut(&T) -> K + Send,
    By: FnMut(&T) -> S + Send,
{
    type In = Rows<T>;
    type Out = Rows<Ranked<K, T>>;

    fn take_in(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Self::Out>,
    ) -> Result<(), OperatorError> {
        let is_late = |time| self.state.is_late(time);
        let rows = set_late_rows_aside(batch, is_late, self.late, &mut self.counts, out);
        rows.iter().for_each(|row| self.add(row));
        Ok(())
    }

    fn advance(&mut self, watermark: EventTime) {
        self.state.advance(watermark);
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        while self.output.len() < BATCH_ROWS {
            let next = self.current.take();
            let Some((top, at)) = next.or_else(|| Some((self.state.next_due()?, 0))) else {
                return Ok(Gathered::All);
            };
            let Some((rank, row)) = top.rows.get(at) else {
                continue;
            };
            let event_time = match top.window {
                Some(window) => Some(window.last()),
                None => row.event_time,
            };
            let value = Ranked {
                key: top.key.clone(),
                window: top.window,
                rank: *rank,
                value: row.value.clone(),
            };
            self.output.push(Row { value, event_time });
            self.current = Some((top, at + 1));
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    fn build(&mut self) -> Result<Self::Out, OperatorError> {
        Ok(std::mem::take(&mut self.output))
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operator::Operator;
    use crate::operators::testing::{Harness, Random};

    type Value = (u8, i64);
    type Out = Rows<Ranked<u8, Value>>;

    /// The first `n` of rows in the order in which they came.
    fn first(rows: &[Row<Value>], n: usize, is_descending: bool) -> Vec<Value> {
        let mut values: Vec<Value> = rows.iter().map(|row| row.value).collect();
        values.sort_by_key(|value| if is_descending { -value.1 } else { value.1 });
        values.truncate(n);
        values
    }

    fn harness(
        n: usize,
        is_descending: bool,
        windows: Option<WindowAssigner>,
        room: usize,
    ) -> Harness<impl Operator<Rows<Value>, Out>, Out> {
        let (key, by) = (|value: &Value| value.0, |value: &Value| value.1 / 4);
        let top = match is_descending {
            true => TopN::greatest(n, key, by),
            false => TopN::least(n, key, by),
        };
        let top = match windows {
            Some(windows) => top.by_window(windows, None),
            None => top,
        };
        Harness::new(top, room)
    }

    #[test]
    fn rows_that_share_the_last_place_are_all_in() {
        let mut random = Random::new("rows_that_share_the_last_place_are_all_in");
        for _ in 0..50 {
            let n = random.below(4) as usize;
            let top = TopN::greatest(n, |_: &Value| 0_u8, |value: &Value| value.1).with_ties();
            let mut harness: Harness<_, Out> = Harness::new(top, 1);
            let mut values: Vec<i64> = (0..30).map(|_| random.between(0, 6)).collect();
            harness.push(Rows::from_iter(
                values.iter().map(|value| Row::untimed((0, *value))),
            ));
            values.sort_by_key(|value| -value);
            let rank = |value: &i64| values.iter().filter(|other| *other > value).count() + 1;
            let expected: Vec<(usize, i64)> =
                values.iter().map(|value| (rank(value), *value)).collect();
            let expected = expected.into_iter().filter(|(rank, _)| *rank <= n);
            let out = harness.take_data().into_iter().flatten();
            let out = out.map(|row| (row.value.rank as usize, row.value.value.1));
            assert!(out.eq(expected));
        }
    }

    #[test]
    fn every_batch_gives_the_first_rows_so_far_of_the_keys_that_it_changed() {
        let mut random = Random::new("every_batch_gives_the_first_rows");
        for _ in 0..20 {
            let (n, is_descending) = (random.below(5) as usize, random.below(2) == 0);
            let mut harness = harness(n, is_descending, None, 1);
            let mut all: BTreeMap<u8, Vec<Row<Value>>> = BTreeMap::new();
            for _ in 0..30 {
                let mut before = BTreeMap::new();
                let rows: Vec<Row<Value>> = (0..random.below(6))
                    .map(|_| {
                        let key = random.below(3) as u8;
                        Row::untimed((key, 4 * random.between(-9, 9)))
                    })
                    .collect();
                for row in &rows {
                    let of_key = all.entry(row.value.0).or_default();
                    let kept = first(of_key, n, is_descending);
                    before.entry(row.value.0).or_insert((kept, of_key.len()));
                    of_key.push(row.clone());
                }
                harness.push(Rows::from(rows));
                let mut told: BTreeMap<u8, Vec<Value>> = BTreeMap::new();
                for row in harness.take_data().into_iter().flatten() {
                    let values = told.entry(row.value.key).or_default();
                    values.push(row.value.value);
                    assert_eq!(row.value.rank, values.len() as u64);
                }
                for (key, (kept, _)) in before {
                    let now = first(&all[&key], n, is_descending);
                    match told.remove(&key) {
                        Some(told) => assert_eq!(told, now),
                        None => assert_eq!(now, kept, "an unchanged key says nothing"),
                    }
                }
                assert!(told.is_empty(), "other keys say nothing");
            }
        }
    }

    #[test]
    fn every_window_gives_its_first_rows_when_it_is_complete() {
        let mut random = Random::new("every_window_gives_its_first_rows");
        for _ in 0..20 {
            let windows = WindowAssigner::sliding(10, random.between(3, 11), 0).expect("windows");
            let mut harness = harness(2, true, Some(windows), 1);
            let mut model: BTreeMap<(i64, u8), Vec<Row<Value>>> = BTreeMap::new();
            let (mut around, mut watermark) = (0, i64::MIN);
            for step in 0..60 {
                around += random.between(0, 4);
                let row = Row::at(
                    around + random.between(-12, 8),
                    (random.below(2) as u8, 4 * random.between(-9, 9)),
                );
                for window in windows.windows_of(row.event_time.unwrap_or_default()) {
                    if window.last() > watermark {
                        let of = model.entry((window.last(), row.value.0)).or_default();
                        of.push(row.clone());
                    }
                }
                harness.push(Rows::from(vec![row]));
                harness.watermark::<Rows<Value>>(Watermark::idle(1000));
                assert!(harness.take_data().is_empty(), "nothing is complete");
                watermark = if step == 59 { i64::MAX } else { around - 5 };
                harness.watermark::<Rows<Value>>(Watermark::active(watermark));
                let mut told: BTreeMap<(i64, u8), Vec<Value>> = BTreeMap::new();
                for row in harness.take_data().into_iter().flatten() {
                    let last = row.value.window.expect("by window").last();
                    assert_eq!(row.event_time, Some(last));
                    told.entry((last, row.value.key))
                        .or_default()
                        .push(row.value.value);
                }
                let later = model.split_off(&(watermark, u8::MAX));
                let due = std::mem::replace(&mut model, later);
                let due: BTreeMap<_, _> = due
                    .into_iter()
                    .map(|(of, rows)| (of, first(&rows, 2, true)))
                    .collect();
                assert_eq!(told, due);
            }
        }
    }

    #[test]
    fn many_keys_come_out_in_bounded_batches() {
        let many = 2 * BATCH_ROWS as i64 + 1;
        let run = |room| {
            let mut top: Harness<_, Rows<Ranked<i64, i64>>> =
                Harness::new(TopN::least(1, |n: &i64| *n, |n: &i64| *n), room);
            top.push((0..many).map(Row::untimed).collect::<Rows<i64>>());
            top.take_data()
        };
        assert_eq!(run(usize::MAX).len(), 3);
        assert_eq!(run(1), run(usize::MAX));
    }
}
