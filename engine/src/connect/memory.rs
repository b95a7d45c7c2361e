//! Sources and sinks in memory, for tests, benches and embedders.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringway_shm::Bell;

use crate::batch::{Payload, Row};
use crate::clock::ProcessingTime;
use crate::element::{StreamElement, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, Progress, Sink, Source, SourceProgress, Subtask};

/// Elements that one poll emits at most, so that tasks share a core fairly.
const POLL_ELEMENTS_MAX: usize = 16;

/// A source that emits what it is made of, in order, and ends.
#[derive(Clone, Debug)]
pub struct MemorySource<B> {
    elements: VecDeque<StreamElement<B>>,
}

impl<B: Payload> MemorySource<B> {
    /// A source of these elements: batches and watermarks.
    ///
    /// # Panics
    /// When there is a barrier or a drain marker among them: those are for the runtime to make.
    pub fn new(elements: impl IntoIterator<Item = StreamElement<B>>) -> Self {
        let elements: VecDeque<_> = elements.into_iter().collect();
        let is_sources = |element: &StreamElement<B>| {
            matches!(
                element,
                StreamElement::Data(_) | StreamElement::Watermark(_)
            )
        };
        assert!(
            elements.iter().all(is_sources),
            "a source makes batches and watermarks only"
        );
        Self { elements }
    }

    /// A source of these batches, without watermarks before the end.
    pub fn of_batches(batches: impl IntoIterator<Item = B>) -> Self {
        Self::new(batches.into_iter().map(StreamElement::Data))
    }
}

impl<B: Payload> Source<B> for MemorySource<B> {
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, B>) -> Result<SourceProgress, OperatorError> {
        for _ in 0..POLL_ELEMENTS_MAX {
            if out.is_full() {
                return Ok(SourceProgress::Ready);
            }
            match self.elements.pop_front() {
                Some(StreamElement::Data(batch)) => out.emit(batch),
                Some(StreamElement::Watermark(watermark)) => out.watermark(watermark),
                Some(StreamElement::Barrier(_) | StreamElement::Drain(_)) => {
                    unreachable!("refused when the source was made")
                }
                None => return Ok(SourceProgress::End),
            }
        }
        Ok(SourceProgress::Ready)
    }
}

/// A handle to what collecting sinks were given. A clone is another handle to the same.
///
/// It is for tests, and for embedders that want the result of a small job: it takes a lock
/// for each batch, and it grows.
#[derive(Debug)]
pub struct Collected<B>(Arc<Mutex<Vec<StreamElement<B>>>>);

impl<B: Payload> Collected<B> {
    /// A handle to nothing yet.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// A sink that puts what it gets here. Several may: each one's elements keep their order.
    pub fn sink(&self) -> CollectSink<B> {
        CollectSink {
            collected: self.clone(),
            rows: 0,
            rows_max: usize::MAX,
        }
    }

    /// What was collected so far, batches and watermarks in order; it is gone from here.
    pub fn take(&self) -> Vec<StreamElement<B>> {
        std::mem::take(&mut *self.lock())
    }

    /// The batches that were collected so far.
    pub fn batches(&self) -> Vec<B> {
        let elements = self.lock();
        let batches = elements.iter().filter_map(|element| match element {
            StreamElement::Data(batch) => Some(batch.clone()),
            _ => None,
        });
        batches.collect()
    }

    /// The values of the rows that were collected so far.
    pub fn values<T: Clone + Send + 'static>(&self) -> Vec<T>
    where
        B: IntoIterator<Item = Row<T>>,
    {
        self.batches()
            .into_iter()
            .flatten()
            .map(|row| row.value)
            .collect()
    }

    fn push(&self, element: StreamElement<B>) {
        self.lock().push(element);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<StreamElement<B>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Clone for Collected<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Payload> Default for Collected<B> {
    fn default() -> Self {
        Self::new()
    }
}

/// A sink that keeps what it gets in memory.
#[derive(Clone, Debug)]
pub struct CollectSink<B> {
    collected: Collected<B>,
    rows: usize,
    rows_max: usize,
}

impl<B> CollectSink<B> {
    /// The same sink, which fails the job rather than keep more than `rows_max` rows.
    /// Without it there is no bound.
    #[must_use]
    pub fn bounded(self, rows_max: usize) -> Self {
        Self { rows_max, ..self }
    }
}

impl<B: Payload> Sink<B> for CollectSink<B> {
    fn write(&mut self, batch: B, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.rows += batch.rows();
        if self.rows > self.rows_max {
            return Err(OperatorError::new(format!(
                "{} rows came, and this sink keeps at most {} in memory",
                self.rows, self.rows_max
            )));
        }
        self.collected.push(StreamElement::Data(batch));
        Ok(Progress::Done)
    }

    fn on_watermark(&mut self, watermark: Watermark) -> Result<(), OperatorError> {
        self.collected.push(StreamElement::Watermark(watermark));
        Ok(())
    }
}
