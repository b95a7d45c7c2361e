//! What connectors promise, with real files. Goal: each promise of `docs/CONNECTORS.md` that
//! can be broken. Method: sources and sinks are stepped as a worker would, in virtual time.

mod arrow_ipc;
mod compressed;
mod csv;
mod documented;
mod files;
mod hostile;
mod live;
mod made;
mod ndjson;
mod parquet;
mod resume;
mod sinks;
mod splits;

use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway_shm::Bell;

use crate::clock::{Clock, ProcessingTime};
use crate::element::{StreamElement, Watermark};
use crate::error::OperatorError;
use crate::operator::{
    Collector, Emitter, Progress, Sink, Source, SourceProgress, StepScope, Subtask,
};
use crate::partition::Parallelism;

use super::{ConnectError, SinkOptions, SourceConnector, SourceOptions, checksum};

type Element = StreamElement<RecordBatch>;

/// Long enough for any side thread on a busy machine, and never waited for in full.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Taken {
    elements: Vec<Element>,
    is_full: bool,
    /// How many elements there is room for, if that is bounded.
    room: Option<usize>,
}

impl Collector<RecordBatch> for Taken {
    fn data(&mut self, batch: RecordBatch, _step: &mut StepScope) {
        self.elements.push(StreamElement::Data(batch));
    }

    fn watermark(&mut self, watermark: Watermark, _step: &mut StepScope) {
        self.elements.push(StreamElement::Watermark(watermark));
    }

    fn is_full(&self) -> bool {
        self.is_full || self.room.is_some_and(|room| self.elements.len() >= room)
    }
}

/// A source that is being stepped.
struct Stepped {
    source: Box<dyn Source<RecordBatch>>,
    bell: Bell,
    taken: Taken,
    now: ProcessingTime,
}

impl Stepped {
    fn open(connector: &dyn SourceConnector, index: u32, parallelism: u32) -> Self {
        let subtask = subtask(index, parallelism);
        Self::of(connector.build(&subtask), &subtask)
    }

    fn of(source: Box<dyn Source<RecordBatch>>, subtask: &Subtask) -> Self {
        let mut stepped = Self::unstarted(source, subtask);
        // The first poll starts a reader, and takes nothing where there is no room.
        stepped.taken.is_full = true;
        let _ = stepped.poll().unwrap();
        stepped.taken.is_full = false;
        stepped
    }

    /// One that has not been polled, so that it can be restored.
    fn unstarted(mut source: Box<dyn Source<RecordBatch>>, subtask: &Subtask) -> Self {
        let bell = Bell::thread();
        source.open(subtask, &bell).unwrap();
        Self {
            source,
            bell,
            taken: Taken::default(),
            now: 1_000,
        }
    }

    fn poll(&mut self) -> Result<SourceProgress, OperatorError> {
        let mut step = StepScope::new(Clock::start());
        step.processing_time = self.now;
        let mut out = Emitter::new(&mut self.taken, &mut step, 0);
        self.source.poll(&mut out)
    }

    /// Polls to the end, waits for the bell where nothing is ready, and lets time pass where
    /// the source waits for that.
    fn run(mut self) -> Result<Vec<Element>, OperatorError> {
        self.run_up_to(usize::MAX)?;
        Ok(self.taken.elements)
    }

    /// As `run`, but stops with the batch with which there are so many elements.
    fn run_up_to(&mut self, elements: usize) -> Result<(), OperatorError> {
        self.taken.room = Some(elements);
        loop {
            if self.taken.elements.len() >= elements {
                return Ok(());
            }
            match self.poll()? {
                SourceProgress::End => return Ok(()),
                SourceProgress::Ready => {}
                SourceProgress::Pending(Some(at)) => self.now = at,
                SourceProgress::Pending(None) => {
                    self.bell.arm();
                    if let SourceProgress::Pending(_) = self.poll()? {
                        assert!(self.bell.park(Some(PATIENCE)), "the bell never rang");
                    } else {
                        self.bell.disarm();
                    }
                }
            }
        }
    }
}

fn subtask(index: u32, parallelism: u32) -> Subtask {
    Subtask {
        index,
        parallelism: Parallelism::new(parallelism).unwrap(),
        ..Subtask::single("tested")
    }
}

fn source(connector: &str, options: &str, base: &Path) -> std::sync::Arc<dyn SourceConnector> {
    try_source(connector, options, base).unwrap()
}

fn try_source(
    connector: &str,
    options: &str,
    base: &Path,
) -> Result<std::sync::Arc<dyn SourceConnector>, ConnectError> {
    let table: toml::Table = toml::from_str(options).unwrap();
    SourceOptions::read(connector, table).unwrap().connect(base)
}

/// What all subtasks of a source emit, one after the other.
fn run_all(connector: &dyn SourceConnector, parallelism: u32) -> Vec<Element> {
    (0..parallelism)
        .flat_map(|index| Stepped::open(connector, index, parallelism).run().unwrap())
        .collect()
}

fn batches(elements: &[Element]) -> Vec<&RecordBatch> {
    let batches = elements.iter().filter_map(|element| match element {
        StreamElement::Data(batch) => Some(batch),
        _ => None,
    });
    batches.collect()
}

fn rows(elements: &[Element]) -> usize {
    let batches = batches(elements);
    batches.iter().map(|batch| batch.num_rows()).sum()
}

fn sum(elements: &[Element]) -> u64 {
    let batches = batches(elements);
    batches
        .iter()
        .fold(0, |sum, batch| sum.wrapping_add(checksum(batch)))
}

fn ints(batch: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    let column = batch.column(column).as_primitive::<Int64Type>();
    column.iter().collect()
}

/// No row may be earlier than a watermark before it, and watermarks only advance.
fn assert_watermarks_hold(elements: &[Element]) {
    let mut reached = i64::MIN;
    for element in elements {
        match element {
            StreamElement::Watermark(watermark) => {
                assert!(watermark.timestamp > reached, "watermarks advance");
                assert_ne!(
                    *watermark,
                    Watermark::MAX,
                    "the end is not the source's to say"
                );
                reached = watermark.timestamp;
            }
            StreamElement::Data(batch) => {
                for time in ints(batch, 0).into_iter().flatten() {
                    assert!(time >= reached, "a row at {time} after watermark {reached}");
                }
            }
            _ => panic!("a source makes batches and watermarks only"),
        }
    }
}

/// Writes batches with a sink as a worker would, and ends it.
fn write_all(
    sink: &mut dyn Sink<RecordBatch>,
    batches: impl IntoIterator<Item = RecordBatch>,
) -> Result<(), OperatorError> {
    let bell = Bell::thread();
    sink.open(&subtask(0, 1), &bell)?;
    for batch in batches {
        let progress = sink.write(batch, 0)?;
        finish_call(sink, &bell, progress)?;
    }
    let progress = sink.on_end(0)?;
    finish_call(sink, &bell, progress)
}

fn finish_call(
    sink: &mut dyn Sink<RecordBatch>,
    bell: &Bell,
    mut progress: Progress,
) -> Result<(), OperatorError> {
    while progress == Progress::More {
        bell.arm();
        progress = sink.resume(0)?;
        if progress == Progress::Done {
            bell.disarm();
        } else {
            assert!(bell.park(Some(PATIENCE)), "the bell never rang");
        }
    }
    Ok(())
}

fn flights() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/data/flights.parquet")
}

fn sink(connector: &str, options: &str, base: &Path) -> std::sync::Arc<dyn super::SinkConnector> {
    let table: toml::Table = toml::from_str(options).unwrap();
    let options = SinkOptions::read(connector, table).unwrap();
    options.connect(base).unwrap()
}
