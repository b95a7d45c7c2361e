//! What the subtasks of either side do, whatever carries their edges.

use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Monotonic;
use ringway::edge::{Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway::output::{ByKeyColumns, InTurn, Output};

use crate::edge::socket::{Load, Prebuilt, Total};
use crate::error::BenchError;

/// Batches that a subtask emits, and that are taken from an edge, before it is another's turn.
const STEP_BATCHES: usize = 16;

/// The column of the keys.
const KEY: usize = 1;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subtasks {
    pub(crate) senders: usize,
    pub(crate) receivers: usize,
    /// Whether the rows of a batch go where their keys are, or batches go to all in turn.
    pub(crate) by_key: bool,
}

impl Subtasks {
    /// One sends batches to so many in turn.
    pub(crate) const fn in_turn(receivers: usize) -> Self {
        Self {
            senders: 1,
            receivers,
            by_key: false,
        }
    }

    /// So many split batches by key among so many.
    pub(crate) const fn by_key(senders: usize, receivers: usize) -> Self {
        Self {
            senders,
            receivers,
            by_key: true,
        }
    }

    /// The same from one to one.
    pub(crate) const fn one_edge(self) -> Self {
        Self {
            senders: 1,
            receivers: 1,
            ..self
        }
    }

    pub(crate) const fn edges(self) -> usize {
        self.senders * self.receivers
    }
}

/// A side waits for the other, or lets what carries the edges work.
pub(super) trait Turn {
    /// # Errors
    /// When nothing has happened for a minute.
    fn turn(&mut self, has_worked: bool) -> Result<(), BenchError>;
}

/// Emits `count` batches over all edges, and ends them.
///
/// # Errors
/// When a receiver is gone.
pub(super) fn send(
    edges: Vec<Sender<RecordBatch>>,
    subtasks: Subtasks,
    load: Load,
    prebuilt: &Prebuilt,
    count: u64,
    side: &mut impl Turn,
) -> Result<(), BenchError> {
    // What the clock says does not matter here.
    let now = Monotonic(Duration::from_secs(1));
    let mut outputs = outputs(edges, subtasks, load)?;
    let mut batches = prebuilt.batches(count);
    let senders = subtasks.senders as u64;
    // Each emits as many, whichever is the fastest.
    let mut left: Vec<u64> = (0..senders)
        .map(|sender| count / senders + u64::from(sender < count % senders))
        .collect();
    loop {
        let (mut has_worked, mut is_waiting) = (false, false);
        for (output, left) in outputs.iter_mut().zip(&mut left) {
            for _ in 0..STEP_BATCHES {
                if *left == 0 || output.is_full() {
                    break;
                }
                let Some(batch) = batches.next() else {
                    break;
                };
                output.data(batch, now)?;
                *left -= 1;
                has_worked = true;
            }
            is_waiting |= !output.flush(now)? || *left > 0;
        }
        if !is_waiting {
            break;
        }
        side.turn(has_worked)?;
    }
    for output in &mut outputs {
        output.finish()?;
    }
    Ok(())
}

fn outputs(
    mut edges: Vec<Sender<RecordBatch>>,
    subtasks: Subtasks,
    load: Load,
) -> Result<Vec<Output<RecordBatch>>, BenchError> {
    let mut outputs = Vec::new();
    for _ in 0..subtasks.senders {
        let mut output = Output::new();
        let mine = edges.drain(..subtasks.receivers).collect();
        if subtasks.by_key {
            let keys = ByKeyColumns::bind(&load.schema(), &[KEY])?;
            output.add_group(Box::new(keys), mine);
        } else {
            output.add_group(Box::new(InTurn::default()), mine);
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Takes what comes over all edges until they end.
///
/// # Errors
/// When a sender is gone, or an edge carries nothing.
pub(super) fn receive(
    mut edges: Vec<Receiver<RecordBatch>>,
    side: &mut impl Turn,
) -> Result<Total, BenchError> {
    let mut total = Total::default();
    let mut taken = vec![0_u64; edges.len()];
    let mut has_ended = vec![false; edges.len()];
    while has_ended.contains(&false) {
        let mut has_worked = false;
        for (at, edge) in edges.iter_mut().enumerate() {
            if has_ended[at] {
                continue;
            }
            for _ in 0..STEP_BATCHES {
                match edge.try_pop() {
                    Popped::Element(StreamElement::Data(batch)) => total.add(&batch),
                    Popped::Empty => break,
                    Popped::Ended(Ending::End) => {
                        has_ended[at] = true;
                        break;
                    }
                    other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
                }
                taken[at] += 1;
                has_worked = true;
            }
        }
        side.turn(has_worked)?;
    }
    match taken.iter().position(|taken| *taken == 0) {
        Some(edge) => Err(BenchError::new(format!("nothing came over edge {edge}"))),
        None => Ok(total),
    }
}
