//! Any number of rows out for each row in.

use crate::batch::{Row, Rows};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress};

/// Replaces each row by the values of an iterator; each has the event time of the row.
///
/// The iterator is advanced only while the output has room, so that even one row that
/// becomes a billion takes the memory of one batch. Batches have at most
/// [`BATCH_ROWS`] rows.
pub struct FlatMap<T, F, I: IntoIterator> {
    map: F,
    input: std::vec::IntoIter<Row<T>>,
    current: Option<(I::IntoIter, Option<EventTime>)>,
}

impl<T, F, I: IntoIterator> FlatMap<T, F, I>
where
    F: FnMut(T) -> I,
{
    /// An operator that replaces each value by those of `map` of it.
    pub fn new(map: F) -> Self {
        Self {
            map,
            input: Vec::new().into_iter(),
            current: None,
        }
    }

    fn next_row(&mut self) -> Option<Row<I::Item>> {
        loop {
            if let Some((values, event_time)) = &mut self.current {
                if let Some(value) = values.next() {
                    return Some(Row {
                        value,
                        event_time: *event_time,
                    });
                }
                self.current = None;
            }
            let row = self.input.next()?;
            self.current = Some(((self.map)(row.value).into_iter(), row.event_time));
        }
    }
}

impl<T, F, I> Operator<Rows<T>, Rows<I::Item>> for FlatMap<T, F, I>
where
    T: Clone + Send + 'static,
    F: FnMut(T) -> I + Send,
    I: IntoIterator,
    I::IntoIter: Send,
    I::Item: Clone + Send + 'static,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<I::Item>>,
    ) -> Result<Progress, OperatorError> {
        debug_assert!(self.current.is_none(), "the last batch is done");
        self.input = batch.into_vec().into_iter();
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<I::Item>>) -> Result<Progress, OperatorError> {
        loop {
            if out.is_full() {
                return Ok(Progress::More);
            }
            let mut batch = Rows::new();
            while batch.len() < BATCH_ROWS {
                match self.next_row() {
                    Some(row) => batch.push(row),
                    None => {
                        out.emit(batch);
                        return Ok(Progress::Done);
                    }
                }
            }
            out.emit(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::Harness;

    fn exploded(room: usize) -> Vec<Rows<u64>> {
        let explode = FlatMap::new(|n: u64| 0..n);
        let mut harness: Harness<_, Rows<u64>> = Harness::new(explode, room);
        harness.push(Rows::from(vec![
            Row::at(1, 2),
            Row::at(2, 0),
            Row::untimed(3 * BATCH_ROWS as u64),
            Row::at(4, 1),
        ]));
        harness.take_data()
    }

    #[test]
    fn a_row_that_becomes_many_batches_goes_on_where_it_stopped() {
        let all = exploded(usize::MAX);
        assert!(all.iter().all(|batch| batch.len() <= BATCH_ROWS));
        assert_eq!(exploded(1), all, "room for one batch at a time");
        let rows: Vec<_> = all.into_iter().flatten().collect();
        assert_eq!(rows.len(), 3 * BATCH_ROWS + 3);
        assert_eq!(rows[..2], [Row::at(1, 0), Row::at(1, 1)]);
        assert_eq!(rows[2], Row::untimed(0));
        assert_eq!(rows[3 * BATCH_ROWS + 2], Row::at(4, 0));
    }
}
