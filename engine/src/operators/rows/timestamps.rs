//! Event times and watermarks of typed rows.

use crate::batch::{Row, Rows};
use crate::clock::ProcessingTime;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};
use crate::operators::watermarks::StreamWatermarks;
use crate::watermark::WatermarkStrategy;

/// Gives each row its event time, and makes the stream's watermarks from them.
///
/// Watermarks that come in end here, but for the one that says the stream is over; an idle
/// one is passed on as idle with the watermark made so far.
#[derive(Clone, Debug)]
pub struct AssignTimestamps<F> {
    event_time: F,
    watermarks: StreamWatermarks,
}

impl<F> AssignTimestamps<F> {
    /// An operator that gives each row the event time `event_time` of it. To keep the event
    /// times that rows have, give `|row| row.event_time`.
    pub fn new(event_time: F, strategy: WatermarkStrategy) -> Self {
        Self {
            event_time,
            watermarks: StreamWatermarks::new(strategy),
        }
    }
}

impl<T, F> Operator<Rows<T>, Rows<T>> for AssignTimestamps<F>
where
    T: Clone + Send + 'static,
    F: FnMut(&Row<T>) -> Option<EventTime> + Send,
{
    fn process(
        &mut self,
        mut batch: Rows<T>,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        let mut latest = None;
        for row in batch.iter_mut() {
            row.event_time = (self.event_time)(row);
            latest = latest.max(row.event_time);
        }
        self.watermarks.batch(batch, latest, out);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<T>>,
    ) -> Result<Progress, OperatorError> {
        self.watermarks.watermark(watermark, out);
        Ok(Progress::Done)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, Rows<T>>) -> Result<Progress, OperatorError> {
        self.watermarks.poll(out);
        Ok(Progress::Done)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        self.watermarks.next_timer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::StreamElement;
    use crate::operators::testing::Harness;

    type Stream = Harness<Box<dyn Operator<Rows<i64>, Rows<i64>>>, Rows<i64>>;

    fn assign(strategy: WatermarkStrategy) -> Stream {
        let operator = AssignTimestamps::new(|row: &Row<i64>| Some(row.value * 10), strategy);
        Harness::new(Box::new(operator), 1)
    }

    fn watermarks(harness: &mut Stream) -> Vec<Watermark> {
        let elements = harness.take().into_iter();
        elements
            .filter_map(|element| match element {
                StreamElement::Watermark(watermark) => Some(watermark),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn rows_get_their_times_and_the_watermark_follows_them() {
        let mut harness = assign(WatermarkStrategy::bounded_out_of_orderness(5));
        harness.push(Rows::from(vec![Row::untimed(3), Row::untimed(1)]));
        assert_eq!(
            harness.take(),
            vec![
                StreamElement::Data(Rows::from(vec![Row::at(30, 3), Row::at(10, 1)])),
                StreamElement::Watermark(Watermark::active(25)),
            ]
        );
        harness.push(Rows::from(vec![Row::untimed(2)]));
        assert_eq!(watermarks(&mut harness), [], "it never decreases");
    }

    #[test]
    fn watermarks_of_the_input_end_here_but_the_end_of_time_passes() {
        let mut harness = assign(WatermarkStrategy::monotonic());
        harness.watermark::<Rows<i64>>(Watermark::active(1000));
        assert_eq!(watermarks(&mut harness), []);
        harness.watermark::<Rows<i64>>(Watermark::MAX);
        assert_eq!(watermarks(&mut harness), [Watermark::MAX]);
    }

    #[test]
    fn an_idle_input_is_told_once_and_its_next_row_makes_it_active_before_it() {
        let mut harness = assign(WatermarkStrategy::monotonic());
        harness.push(Rows::from(vec![Row::untimed(3)]));
        harness.take();
        harness.watermark::<Rows<i64>>(Watermark::idle(77));
        harness.watermark::<Rows<i64>>(Watermark::idle(77));
        assert_eq!(watermarks(&mut harness), [Watermark::idle(30)]);
        harness.push(Rows::from(vec![Row::untimed(3)]));
        assert_eq!(
            harness.take(),
            vec![
                StreamElement::Watermark(Watermark::active(30)),
                StreamElement::Data(Rows::from(vec![Row::at(30, 3)])),
            ]
        );
    }

    #[test]
    fn a_stream_that_never_has_a_row_becomes_idle_in_time() {
        let mut harness = assign(WatermarkStrategy::monotonic().idle_after(100));
        harness.time::<Rows<i64>>(1000);
        harness.time::<Rows<i64>>(1099);
        assert_eq!(watermarks(&mut harness), []);
        harness.time::<Rows<i64>>(1100);
        assert_eq!(watermarks(&mut harness), [Watermark::idle(i64::MIN)]);
    }
}
