//! A source that reads on a thread beside the worker.

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connect::files::planned::PlannedInput;
use crate::connect::files::progress::SplitProgress;
use crate::connect::saved::{self, Saved, place_of};
use crate::connect::{ConnectError, ConnectorStats, Split, SplitInput, WatermarkOptions};
use crate::element::{Barrier, EventTime};
use crate::error::OperatorError;
use crate::operator::{Emitter, Source, SourceProgress, StateReader, StateWriter, Subtask};

use super::reader::{Note, Read, ReadJob, Reader};

/// Batches that one poll emits at most, so that tasks share a core fairly.
const POLL_BATCHES_MAX: usize = 4;

/// The input of one subtask as its worker knows it: what is to be read, and how far what was read
/// has been emitted.
pub(crate) trait Input: Send {
    /// It is the input of subtask `index` of `parallelism`, which has read nothing yet.
    fn open(&mut self, index: u32, parallelism: u32);

    /// Goes back to what the subtasks saved. One that is missing had nothing left.
    fn restore(&mut self, saved: Vec<Saved<Value>>) -> Result<(), ConnectError>;

    /// The splits that are left, in the order in which they are read.
    fn splits(&self) -> Vec<Split>;

    /// What reads all that is left; none where nothing is.
    fn job(&mut self) -> Option<Box<dyn ReadJob>>;

    /// What the job says of what was emitted.
    fn note(&mut self, note: Note);

    /// What is left to be emitted.
    fn save(&self) -> Value;
}

/// A source that reads on a thread of its own: the splits of one subtask, one after the other,
/// or whatever its input is.
pub struct SplitSource {
    input: Box<dyn Input>,
    stats: ConnectorStats,
    watermark: Option<WatermarkOptions>,
    /// The last watermark emitted, or the one at which it goes on.
    reached: Option<EventTime>,
    stage: Stage,
}

/// The state of one subtask, with that of its input.
#[derive(Serialize, Deserialize)]
struct SavedSource {
    watermark: Option<EventTime>,
    input: Value,
}

enum Stage {
    New,
    Open { place: (u32, u32), bell: Bell },
    Reading(Box<Reading>),
    Ended,
}

/// What there is once the first poll has come: until then it is not known where to begin.
struct Reading {
    place: (u32, u32),
    reader: Reader,
    progress: SplitProgress,
}

impl SplitSource {
    /// A source of `input`, with the watermarks that `watermark` asks for. Each subtask reads its
    /// part of the splits.
    pub fn new(input: SplitInput, watermark: Option<WatermarkOptions>) -> Self {
        let stats = input.stats.clone();
        Self::of(Box::new(PlannedInput::new(input)), stats, watermark)
    }

    /// A source of `input`, whatever that is.
    pub(crate) fn of(
        input: Box<dyn Input>,
        stats: ConnectorStats,
        watermark: Option<WatermarkOptions>,
    ) -> Self {
        Self {
            input,
            stats,
            watermark,
            reached: None,
            stage: Stage::New,
        }
    }

    /// Starts to read what is left.
    fn start(&mut self, place: (u32, u32), bell: &Bell) -> Result<Stage, OperatorError> {
        let splits = self.input.splits();
        let Some(job) = self.input.job() else {
            return Ok(Stage::Ended);
        };
        Ok(Stage::Reading(Box::new(Reading {
            place,
            reader: Reader::start(job, self.stats.clone(), bell)?,
            progress: SplitProgress::new(self.watermark.as_ref(), &splits)
                .going_on_at(self.reached),
        })))
    }

    fn place(&self) -> Option<(u32, u32)> {
        match &self.stage {
            Stage::Open { place, .. } => Some(*place),
            Stage::Reading(reading) => Some(reading.place),
            Stage::New | Stage::Ended => None,
        }
    }
}

impl Reading {
    fn emit_watermark(
        &mut self,
        reached: &mut Option<EventTime>,
        out: &mut Emitter<'_, RecordBatch>,
    ) {
        if let Some(watermark) = self.progress.poll(out.now()) {
            *reached = Some(watermark.timestamp);
            out.watermark(watermark);
        }
    }

    /// Emits what the reader has ready, up to a few batches.
    fn drain(
        &mut self,
        input: &mut dyn Input,
        reached: &mut Option<EventTime>,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Drained, OperatorError> {
        for _ in 0..POLL_BATCHES_MAX {
            if out.is_full() {
                break;
            }
            match self.reader.try_pop() {
                Ok(Read::Batch {
                    split,
                    batch,
                    latest,
                    after,
                }) => {
                    self.progress.observe(split, latest);
                    out.emit(batch);
                    input.note(Note::Reached(split, after));
                    // After each batch, so that what a run emits does not depend on how far
                    // the reader was ahead.
                    self.emit_watermark(reached, out);
                }
                Ok(Read::Watermark(watermark)) => out.watermark(watermark),
                Ok(Read::Note(note)) => input.note(note),
                Ok(Read::Failed(error)) => return Err(error.into()),
                Err(PopError::Empty) => return Ok(Drained::Empty),
                Err(PopError::Finished) => return Ok(Drained::End),
                Err(PopError::Abandoned) => {
                    return Err(OperatorError::new("the reader of this source is gone"));
                }
            }
        }
        Ok(Drained::Some)
    }
}

enum Drained {
    Some,
    Empty,
    End,
}

impl Source<RecordBatch> for SplitSource {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        if !matches!(self.stage, Stage::New) {
            return Err(OperatorError::new(format!("{subtask} was opened before")));
        }
        let place = place_of(subtask);
        self.input.open(place.0, place.1);
        let bell = bell.clone();
        self.stage = Stage::Open { place, bell };
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        if let Stage::Open { place, bell } = &self.stage {
            let (place, bell) = (*place, bell.clone());
            self.stage = self.start(place, &bell)?;
        }
        let reading = match &mut self.stage {
            Stage::Reading(reading) => reading,
            Stage::Ended => return Ok(SourceProgress::End),
            Stage::New | Stage::Open { .. } => {
                return Err(OperatorError::new("this source is not open"));
            }
        };
        match reading.drain(&mut *self.input, &mut self.reached, out)? {
            Drained::Some => Ok(SourceProgress::Ready),
            Drained::End => {
                self.stage = Stage::Ended;
                Ok(SourceProgress::End)
            }
            Drained::Empty => {
                if reading.progress.may_be_idle() {
                    reading.emit_watermark(&mut self.reached, out);
                }
                Ok(SourceProgress::Pending(reading.progress.idle_at()))
            }
        }
    }

    fn snapshot(
        &mut self,
        _barrier: Barrier,
        state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        // One that has ended saves nothing, as one that is not asked any more.
        let Some(place) = self.place() else {
            return Ok(());
        };
        let saved = SavedSource {
            watermark: self.reached,
            input: self.input.save(),
        };
        saved::save(place, saved, state)
    }

    fn restore(&mut self, state: &mut dyn StateReader) -> Result<(), OperatorError> {
        let Stage::Open { place, .. } = self.stage else {
            return Err(OperatorError::new("a source is restored once it is open"));
        };
        let all = saved::restore::<SavedSource>(state)?;
        self.reached = watermark_of(&all, place);
        let inputs = all.into_iter().map(Saved::map_input).collect();
        Ok(self.input.restore(inputs)?)
    }
}

/// The watermark at which the subtask at `place` goes on: its own, or, where there were more or
/// fewer subtasks, the lowest, which is as far as all of them had come.
fn watermark_of(all: &[Saved<SavedSource>], place: (u32, u32)) -> Option<EventTime> {
    let own = all
        .iter()
        .find(|saved| (saved.index, saved.parallelism) == place);
    match own {
        Some(own) => own.value.watermark,
        // None is lower than any.
        None => all
            .iter()
            .map(|saved| saved.value.watermark)
            .min()
            .flatten(),
    }
}

impl Saved<SavedSource> {
    fn map_input(self) -> Saved<Value> {
        let Saved {
            form,
            index,
            parallelism,
            value,
        } = self;
        Saved {
            form,
            index,
            parallelism,
            value: value.input,
        }
    }
}
