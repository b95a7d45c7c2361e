//! Watermarks made inside a job, from the rows that pass.

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::element::{EventTime, Watermark};
use crate::operator::Emitter;
use crate::watermark::{WatermarkGenerator, WatermarkStrategy};

/// The only split of what is not a source.
const WHOLE_STREAM: u64 = 0;

/// Makes the watermarks of a stream that passes through an operator.
///
/// The stream's own watermarks end here, but for its end. When the stream says that it is
/// idle, so does this; the next rows make it active again.
#[derive(Clone, Debug)]
pub(super) struct StreamWatermarks {
    generator: WatermarkGenerator,
    /// The generator has been asked once, from when on it knows the time.
    started: bool,
    /// The last watermark passed on said idle because the stream did.
    idle: bool,
}

impl StreamWatermarks {
    pub(super) fn new(strategy: WatermarkStrategy) -> Self {
        let mut generator = WatermarkGenerator::new(strategy);
        generator.split_opened(WHOLE_STREAM);
        Self {
            generator,
            started: false,
            idle: false,
        }
    }

    /// Passes on a batch whose highest event time is `latest`, then the watermark.
    pub(super) fn batch<B: Payload>(
        &mut self,
        batch: B,
        latest: Option<EventTime>,
        out: &mut Emitter<'_, B>,
    ) {
        if batch.rows() == 0 {
            return;
        }
        if std::mem::take(&mut self.idle) {
            out.watermark(Watermark::active(self.generator.current()));
        }
        self.generator.observe_max(WHOLE_STREAM, latest);
        out.emit(batch);
        self.poll(out);
    }

    /// Takes a watermark of the stream.
    pub(super) fn watermark<B: Payload>(&mut self, watermark: Watermark, out: &mut Emitter<'_, B>) {
        if watermark == Watermark::MAX {
            out.watermark(watermark);
        } else if watermark.idle && !self.idle {
            self.idle = true;
            out.watermark(Watermark::idle(self.generator.current()));
        }
    }

    /// The time of [`Self::next_timer`] has come.
    pub(super) fn poll<B: Payload>(&mut self, out: &mut Emitter<'_, B>) {
        self.started = true;
        if let Some(watermark) = self.generator.poll(out.now())
            && !(self.idle && watermark.idle)
        {
            out.watermark(watermark);
        }
    }

    /// At once before the first row, so that a stream that never has one becomes idle too.
    pub(super) fn next_timer(&self) -> Option<ProcessingTime> {
        match self.started {
            true => self.generator.idle_at(),
            false => Some(ProcessingTime::MIN),
        }
    }
}
