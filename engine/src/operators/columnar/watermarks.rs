//! Watermarks of record batches.

use arrow::array::RecordBatch;

use crate::clock::ProcessingTime;
use crate::column::event_times;
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};
use crate::operators::watermarks::StreamWatermarks;
use crate::watermark::WatermarkStrategy;

/// Makes the stream's watermarks from the event times in column 0.
///
/// Watermarks that come in end here, but for the one that says the stream is over; an idle
/// one is passed on as idle with the watermark made so far.
#[derive(Clone, Debug)]
pub struct AssignWatermarks {
    watermarks: StreamWatermarks,
}

impl AssignWatermarks {
    /// An operator that makes watermarks by `strategy`.
    pub fn new(strategy: WatermarkStrategy) -> Self {
        Self {
            watermarks: StreamWatermarks::new(strategy),
        }
    }
}

impl Operator<RecordBatch, RecordBatch> for AssignWatermarks {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        let latest = arrow::compute::max(event_times(&batch)?);
        self.watermarks.batch(batch, latest, out);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        self.watermarks.watermark(watermark, out);
        Ok(Progress::Done)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
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
    use crate::operators::columnar::samples::numbers;
    use crate::operators::testing::Harness;

    #[test]
    fn the_watermark_follows_the_event_times_of_column_0() {
        let operator = AssignWatermarks::new(WatermarkStrategy::bounded_out_of_orderness(2));
        let mut harness: Harness<_, RecordBatch> = Harness::new(operator, 1);
        let batch = numbers(&[Some(100), None]);
        harness.push(batch.clone());
        harness.watermark::<RecordBatch>(Watermark::active(50));
        harness.watermark::<RecordBatch>(Watermark::MAX);
        assert_eq!(
            harness.take(),
            vec![
                StreamElement::Data(batch),
                StreamElement::Watermark(Watermark::active(5)),
                StreamElement::Watermark(Watermark::MAX),
            ]
        );
    }
}
