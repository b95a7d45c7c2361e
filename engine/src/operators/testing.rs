//! Drives one operator in a test, with as little room in its output as the test wants.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};

use crate::batch::{Payload, Row};
use crate::clock::Clock;
use crate::element::{StreamElement, Watermark};
use crate::error::OperatorError;
use crate::operator::{Collector, Emitter, Operator, Progress, RowCounts, SideTag, StepScope};

/// Records what an operator emits, and is full after `room` batches.
struct Recorder<B> {
    elements: Vec<StreamElement<B>>,
    room: usize,
    taken: usize,
}

impl<B: Payload> Collector<B> for Recorder<B> {
    fn data(&mut self, batch: B, _step: &mut StepScope) {
        assert!(batch.rows() > 0, "an empty batch is not emitted");
        assert!(
            self.taken < self.room,
            "the operator goes on emitting into a full output"
        );
        self.elements.push(StreamElement::Data(batch));
        self.taken += 1;
    }

    fn watermark(&mut self, watermark: Watermark, _step: &mut StepScope) {
        self.elements.push(StreamElement::Watermark(watermark));
    }

    fn is_full(&self) -> bool {
        self.taken >= self.room
    }
}

/// One operator with its output and up to eight side outputs of type `S`.
pub(crate) struct Harness<Op, Out, S = Out> {
    pub(crate) operator: Op,
    recorder: Recorder<Out>,
    step: StepScope,
    /// How many steps the last call took.
    pub(crate) steps: usize,
    side: std::marker::PhantomData<fn() -> S>,
}

impl<Op, Out: Payload, S: Payload> Harness<Op, Out, S> {
    /// An operator whose output is full after `room` batches.
    pub(crate) fn new(operator: Op, room: usize) -> Self {
        let mut step = StepScope::new(Clock::start());
        (0..8).for_each(|_| step.sides.add::<S>(true));
        Self {
            operator,
            recorder: Recorder {
                elements: Vec::new(),
                room,
                taken: 0,
            },
            step,
            steps: 0,
            side: std::marker::PhantomData,
        }
    }

    fn call<In: Payload>(
        &mut self,
        first: impl FnOnce(&mut Op, &mut Emitter<'_, Out>) -> Result<Progress, OperatorError>,
    ) -> Result<(), OperatorError>
    where
        Op: Operator<In, Out>,
    {
        self.recorder.taken = 0;
        let mut out = Emitter::new(&mut self.recorder, &mut self.step, 0);
        let mut progress = first(&mut self.operator, &mut out)?;
        self.steps = 1;
        while progress == Progress::More {
            self.steps += 1;
            self.recorder.taken = 0;
            let mut out = Emitter::new(&mut self.recorder, &mut self.step, 0);
            progress = self.operator.resume(&mut out)?;
        }
        Ok(())
    }

    /// Does one step, and does not resume it.
    pub(crate) fn step(
        &mut self,
        step: impl FnOnce(&mut Op, &mut Emitter<'_, Out>) -> Result<Progress, OperatorError>,
    ) -> Progress {
        self.recorder.taken = 0;
        let mut out = Emitter::new(&mut self.recorder, &mut self.step, 0);
        step(&mut self.operator, &mut out).expect("the step succeeds")
    }

    /// Gives the operator a batch and resumes it until it is done.
    pub(crate) fn process<In: Payload>(&mut self, batch: In) -> Result<(), OperatorError>
    where
        Op: Operator<In, Out>,
    {
        self.call::<In>(|operator, out| operator.process(batch, out))
    }

    /// As [`Harness::process`], for a batch that must not fail.
    pub(crate) fn push<In: Payload>(&mut self, batch: In)
    where
        Op: Operator<In, Out>,
    {
        self.process(batch).expect("the batch is processed");
    }

    /// Gives the operator a watermark and resumes it until it is done.
    pub(crate) fn watermark<In: Payload>(&mut self, watermark: Watermark)
    where
        Op: Operator<In, Out>,
    {
        self.call::<In>(|operator, out| operator.on_watermark(watermark, out))
            .expect("the watermark is processed");
    }

    /// Lets the processing time be `now_ms` and calls the timer if it is due.
    pub(crate) fn time<In: Payload>(&mut self, now_ms: i64)
    where
        Op: Operator<In, Out>,
    {
        self.step.processing_time = now_ms;
        if self.operator.next_timer().is_some_and(|due| due <= now_ms) {
            self.call::<In>(|operator, out| operator.on_timer(out))
                .expect("the timer is processed");
        }
    }

    /// Ends the stream.
    pub(crate) fn end<In: Payload>(&mut self)
    where
        Op: Operator<In, Out>,
    {
        self.call::<In>(|operator, out| operator.on_end(out))
            .expect("the end is processed");
    }

    /// The rows that were treated apart from others.
    pub(crate) fn counts<In: Payload>(&self) -> RowCounts
    where
        Op: Operator<In, Out>,
    {
        self.operator.counts().expect("the operator counts rows")
    }

    /// Rows that came too late or without an event time.
    pub(crate) fn dropped<In: Payload>(&self) -> u64
    where
        Op: Operator<In, Out>,
    {
        let counts = self.counts();
        counts.late_rows + counts.untimed_rows
    }

    /// What was emitted since the last call.
    pub(crate) fn take(&mut self) -> Vec<StreamElement<Out>> {
        std::mem::take(&mut self.recorder.elements)
    }

    /// The batches emitted since the last call.
    pub(crate) fn take_data(&mut self) -> Vec<Out> {
        data(self.take())
    }

    /// The batches emitted to a side output since the last call.
    pub(crate) fn take_side(&mut self, tag: SideTag<S>) -> Vec<S> {
        let mut elements = Vec::new();
        while let Some(element) = self.step.sides.pop::<S>(tag.index()) {
            elements.push(element);
        }
        data(elements)
    }
}

fn data<B>(elements: Vec<StreamElement<B>>) -> Vec<B> {
    elements
        .into_iter()
        .filter_map(|element| match element {
            StreamElement::Data(batch) => Some(batch),
            _ => None,
        })
        .collect()
}

/// The columns `event_time`, `key` and `value` of rows of key and value.
pub(crate) fn batch_of_values(rows: &[Row<(i64, i64)>]) -> RecordBatch {
    let field = |name| Field::new(name, DataType::Int64, true);
    let schema = Schema::new(vec![field("event_time"), field("key"), field("value")]);
    let times: Int64Array = rows.iter().map(|row| row.event_time).collect();
    let keys: Int64Array = rows.iter().map(|row| Some(row.value.0)).collect();
    let values: Int64Array = rows.iter().map(|row| Some(row.value.1)).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(times), Arc::new(keys), Arc::new(values)];
    RecordBatch::try_new(Arc::new(schema), columns).expect("columns and schema agree")
}

/// A small generator of random numbers whose seed is printed and can be given again in
/// `RINGWAY_SEED`.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded from `RINGWAY_SEED`, or from the process's own randomness.
    pub(crate) fn new(test: &str) -> Self {
        use std::hash::BuildHasher;
        let seed = std::env::var("RINGWAY_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| std::hash::RandomState::new().hash_one(test));
        println!("{test}: RINGWAY_SEED={seed}");
        Self(seed)
    }

    /// The next number (splitmix64).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number in `low..high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low) as u64) as i64
    }
}
