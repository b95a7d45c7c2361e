//! What the subtasks of either side do, whatever carries their edges.

use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Monotonic;
use ringway::edge::{Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway::output::{ByKeyColumns, InTurn, Output};

use crate::edge::socket::{Load, Total};
use crate::error::BenchError;
use crate::spent::monotonic_s;

/// Batches that a subtask emits, and that are taken from an edge, before it is another's turn.
const STEP_BATCHES: usize = 16;

/// The column of the keys.
const KEY: usize = 1;

/// What the clock says does not matter here.
const NOW: Monotonic = Monotonic(Duration::from_secs(1));

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

    /// Batches that go over edges between processes before time is taken.
    pub(crate) const fn warm_batches(self) -> u64 {
        warm_batches(self.edges())
    }
}

/// Batches that go over so many edges before time is taken: of the smallest batches each edge
/// gets as many bytes as its segment has, whose pages the kernel gives when they are first
/// written and read. That takes far longer than to move what they hold.
pub(super) const fn warm_batches(edges: usize) -> u64 {
    edges as u64 * 64
}

/// A side waits for the other, or lets what carries the edges work.
pub(super) trait Turn {
    /// # Errors
    /// When nothing has happened for a minute.
    fn turn(&mut self, has_worked: bool) -> Result<(), BenchError>;
}

/// What the subtasks that send give their batches to.
pub(super) struct Outputs {
    outputs: Vec<Output<RecordBatch>>,
}

impl Outputs {
    /// # Errors
    /// When the keys are no columns of the load.
    pub(super) fn new(
        mut edges: Vec<Sender<RecordBatch>>,
        subtasks: Subtasks,
        load: Load,
    ) -> Result<Self, BenchError> {
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
        Ok(Self { outputs })
    }

    /// Emits the next `count` of `batches`, and returns when all edges have taken theirs.
    ///
    /// # Errors
    /// When a receiver is gone.
    pub(super) fn emit(
        &mut self,
        batches: &mut impl Iterator<Item = RecordBatch>,
        count: u64,
        side: &mut impl Turn,
    ) -> Result<(), BenchError> {
        let senders = self.outputs.len() as u64;
        // Each emits as many, whichever is the fastest.
        let mut left: Vec<u64> = (0..senders)
            .map(|sender| count / senders + u64::from(sender < count % senders))
            .collect();
        loop {
            let (mut has_worked, mut is_waiting) = (false, false);
            for (output, left) in self.outputs.iter_mut().zip(&mut left) {
                for _ in 0..STEP_BATCHES {
                    if *left == 0 || output.is_full() {
                        break;
                    }
                    let Some(batch) = batches.next() else {
                        break;
                    };
                    output.data(batch, NOW)?;
                    *left -= 1;
                    has_worked = true;
                }
                is_waiting |= !output.flush(NOW)? || *left > 0;
            }
            if !is_waiting {
                return Ok(());
            }
            side.turn(has_worked)?;
        }
    }

    /// Ends all edges.
    ///
    /// # Errors
    /// When a receiver is gone.
    pub(super) fn finish(mut self) -> Result<(), BenchError> {
        for output in &mut self.outputs {
            output.finish()?;
        }
        Ok(())
    }
}

/// Takes what comes over all edges until they end. Says once when `warm` batches have come, and
/// gives the time when the last has: edges that end take longer than a batch, and not only here.
///
/// # Errors
/// When a sender is gone, or an edge carries nothing.
pub(super) fn receive(
    mut edges: Vec<Receiver<RecordBatch>>,
    side: &mut impl Turn,
    warm: u64,
    is_warm: impl FnOnce(),
) -> Result<(Total, f64), BenchError> {
    let mut is_warm = Some(is_warm);
    let mut total = Total::default();
    let mut last_s = monotonic_s();
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
        if has_worked {
            last_s = monotonic_s();
        }
        if is_warm.is_some() && taken.iter().sum::<u64>() >= warm {
            is_warm.take().into_iter().for_each(|say| say());
        }
        side.turn(has_worked)?;
    }
    match taken.iter().position(|taken| *taken == 0) {
        Some(edge) => Err(BenchError::new(format!("nothing came over edge {edge}"))),
        None => Ok((total, last_s)),
    }
}
