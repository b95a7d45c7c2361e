//! The local edge, and the ring that carries it.

use std::time::Duration;

use ringway::batch::Payload;
use ringway::clock::Monotonic;
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, local};
use ringway::element::StreamElement;
use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

use crate::backoff::Backoff;
use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::{Pair, run_pair};

use super::elements::{Elements, Take};
use super::{CAPACITY_ELEMENTS, FLUSH_ELEMENTS};

/// Bytes of values that an edge within a process copies. Nobody counts them: an edge hands on the
/// very element that it was given, and its values stay where they are.
pub(crate) const COPIED_BYTES: Option<u64> = Some(0);

/// Moves `count` elements over an edge.
///
/// # Errors
/// When an element is lost, doubled or out of order, when the edge does not end as it should,
/// or when a thread cannot be pinned.
pub(crate) fn edge<B: Payload + Sync>(
    cpus: CpuPair,
    elements: &Elements<B>,
    count: u64,
) -> Result<Sample, BenchError> {
    let pair = over_edge(cpus, elements.clones(count), elements.checker(count))?;
    let sample = sample(&pair, count, count * elements.bytes());
    Ok(sample.copying(COPIED_BYTES))
}

/// Moves `count` elements over a ring.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(crate) fn bare_ring<B: Payload + Sync>(
    cpus: CpuPair,
    elements: &Elements<B>,
    count: u64,
) -> Result<Sample, BenchError> {
    let pair = over_ring(cpus, elements.clones(count), elements.checker(count))?;
    Ok(sample(&pair, count, count * elements.bytes()))
}

/// Moves elements over an edge to who takes them.
///
/// # Errors
/// As for [`edge`].
pub(crate) fn over_edge<B: Payload>(
    cpus: CpuPair,
    elements: impl Iterator<Item = StreamElement<B>> + Send,
    taker: impl Take<B>,
) -> Result<Pair<(), ()>, BenchError> {
    let options = EdgeOptions::named("bench").capacity(CAPACITY_ELEMENTS);
    let (sender, receiver) = local::open(options, Bell::thread(), Bell::thread());
    let pair = run_pair(
        cpus,
        || push_to_edge(sender, elements),
        || pop_from_edge(receiver, taker),
    )?;
    pair.first?;
    pair.second?.finish()?;
    Ok(Pair {
        first: (),
        second: (),
        wall: pair.wall,
        spent: pair.spent,
    })
}

/// Moves elements over a ring to who takes them.
///
/// # Errors
/// As for [`bare_ring`].
pub(crate) fn over_ring<B: Payload>(
    cpus: CpuPair,
    elements: impl Iterator<Item = StreamElement<B>> + Send,
    taker: impl Take<B>,
) -> Result<Pair<(), ()>, BenchError> {
    let (producer, consumer) = ring(CAPACITY_ELEMENTS, Bell::thread(), Bell::thread());
    let pair = run_pair(
        cpus,
        || push_to_ring(producer, elements),
        || pop_from_ring(consumer, taker),
    )?;
    pair.second.finish()?;
    Ok(Pair {
        first: (),
        second: (),
        wall: pair.wall,
        spent: pair.spent,
    })
}

fn sample(pair: &Pair<(), ()>, count: u64, bytes: u64) -> Sample {
    Sample::rate(count, pair.wall, pair.spent, bytes)
}

fn push_to_edge<B: Payload>(
    mut sender: Sender<B>,
    elements: impl Iterator<Item = StreamElement<B>>,
) -> Result<(), RejectReason> {
    // A step stamps what it pushes with one time; what the clock says does not matter here.
    let origin = Monotonic(Duration::from_secs(1));
    let mut backoff = Backoff::light();
    let mut unflushed = 0;
    for mut element in elements {
        sender.set_origin(origin);
        while let Err(rejected) = sender.try_push_quiet(element) {
            if rejected.reason != RejectReason::Full {
                return Err(rejected.reason);
            }
            sender.flush();
            backoff.pause();
            element = rejected.element;
        }
        backoff.reset();
        unflushed += 1;
        if unflushed == FLUSH_ELEMENTS {
            unflushed = 0;
            sender.flush();
        }
    }
    sender.finish()
}

fn pop_from_edge<B: Payload, T: Take<B>>(
    mut receiver: Receiver<B>,
    mut taker: T,
) -> Result<T, BenchError> {
    let mut backoff = Backoff::light();
    loop {
        match receiver.try_pop() {
            Popped::Element(element) => {
                taker.take(element);
                backoff.reset();
            }
            Popped::Empty => backoff.pause(),
            Popped::Ended(Ending::End) => return Ok(taker),
            Popped::Ended(other) => {
                return Err(BenchError::new(format!("the edge ended as {other:?}")));
            }
        }
    }
}

fn push_to_ring<T>(mut producer: Producer<T>, elements: impl Iterator<Item = T>) {
    let mut backoff = Backoff::light();
    let mut unflushed = 0;
    for element in elements {
        let mut result = producer.push_quiet(element);
        while let Err(PushError::Full(rejected)) = result {
            producer.wake();
            backoff.pause();
            result = producer.push_quiet(rejected);
        }
        backoff.reset();
        unflushed += 1;
        if unflushed == FLUSH_ELEMENTS {
            unflushed = 0;
            producer.wake();
        }
    }
    producer.finish();
}

fn pop_from_ring<B: Payload, T: Take<B>>(
    mut consumer: Consumer<StreamElement<B>>,
    mut taker: T,
) -> T {
    let mut backoff = Backoff::light();
    loop {
        match consumer.try_pop() {
            Ok(element) => {
                taker.take(element);
                backoff.reset();
            }
            Err(PopError::Empty) => backoff.pause(),
            Err(PopError::Finished | PopError::Abandoned) => return taker,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::Int64Type;

    use super::super::elements::{one_row_batches, record_batches};
    use super::*;

    #[test]
    fn an_edge_and_a_ring_move_the_same_elements() {
        let cpus = CpuPair::choose(None).unwrap();
        let rows = one_row_batches();
        let batches = record_batches();
        let samples = [
            edge(cpus, &rows, 3_000),
            bare_ring(cpus, &rows, 3_000),
            edge(cpus, &batches, 3_000),
            bare_ring(cpus, &batches, 3_000),
        ];
        for sample in samples {
            assert!(sample.unwrap().value > 0.0);
        }
    }

    /// Knows where the values of each batch lie.
    struct Places(Arc<Mutex<Vec<usize>>>);

    impl Take<RecordBatch> for Places {
        fn take(&mut self, element: StreamElement<RecordBatch>) {
            if let StreamElement::Data(batch) = element {
                self.0.lock().unwrap().push(place(&batch));
            }
        }

        fn finish(self) -> Result<(), BenchError> {
            Ok(())
        }
    }

    fn place(batch: &RecordBatch) -> usize {
        let values = batch.column(1).as_primitive::<Int64Type>().values();
        values.as_ptr().addr()
    }

    #[test]
    fn an_edge_copies_no_value() {
        let cpus = CpuPair::choose(None).unwrap();
        let batches = record_batches();
        let places = batches.clones(100).filter_map(|element| match element {
            StreamElement::Data(batch) => Some(place(&batch)),
            _ => None,
        });
        let sent: Vec<usize> = places.collect();
        let came = Arc::default();
        over_edge(cpus, batches.clones(100), Places(Arc::clone(&came))).unwrap();
        assert_eq!(*came.lock().unwrap(), sent);
        assert_eq!(edge(cpus, &batches, 100).unwrap().copied_bytes, Some(0));
    }
}
