//! What an alignment answers.

use crate::clock::Monotonic;
use crate::element::Barrier;
use crate::limits::{DEAD_BARRIERS_MAX, GATE_INPUTS_MAX, PENDING_BARRIERS_MAX};

/// One thing that follows from what an alignment was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignFact {
    /// The checkpoint begins here: snapshot, then forward the barrier. Once an id.
    Forward {
        /// The barrier to forward: pinned mode, terminal where a delivery was terminal.
        barrier: Barrier,
        /// It goes ahead of the inputs that have not delivered it: record those that
        /// [`Alignment::recording_inputs`](super::Alignment::recording_inputs) names.
        unaligned_first: bool,
        /// When it was first delivered, for the time that the alignment took.
        first_at: Monotonic,
    },
    /// Every input has delivered a barrier that was forwarded as unaligned, or ended: its
    /// channel state is complete.
    RecordingsClosed {
        /// The checkpoint.
        id: u64,
    },
    /// An input went on to a newer barrier without this one, so it can never complete:
    /// answer it negatively and discard what was recorded for it.
    Superseded {
        /// The checkpoint.
        id: u64,
    },
    /// A pending id was given up, by an abort or because an input failed: discard what was
    /// recorded for it.
    Aborted {
        /// The checkpoint.
        id: u64,
    },
    /// The id is not taken up: answer it negatively. Its inputs don't wait.
    Refused {
        /// The checkpoint.
        id: u64,
        /// Why.
        why: BarrierRefused,
    },
    /// An open input that waited may be polled again.
    Released {
        /// The input.
        input: usize,
    },
    /// A delivery that changes nothing: a duplicate, or an id that is dead.
    Late {
        /// The checkpoint.
        id: u64,
    },
}

/// Why a barrier is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BarrierRefused {
    /// An input failed, so that no checkpoint can complete here.
    #[error("an input of this subtask failed")]
    InputFailed,
    /// Too many ids are pending: their inputs stay behind, or their aborts don't arrive.
    #[error(
        "{PENDING_BARRIERS_MAX} barriers are pending already: some input delivers none of them"
    )]
    TooManyPending,
    /// So many newer ids are dead that it is no longer known whether this one is.
    #[error("more than {DEAD_BARRIERS_MAX} newer ids are over, so that this one may be too")]
    Forgotten,
}

/// Why an input can't be added now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddRefused {
    /// The new input could not tell whether it belongs to the records before this barrier.
    #[error("barrier {id} is pending: add the input after it went on or was aborted")]
    Pending {
        /// The lowest pending id.
        id: u64,
    },
    /// The terminal barrier with the highest id went on: no barrier of a new input could
    /// follow it.
    #[error("the terminal barrier went on already: nothing may follow it")]
    Terminated,
    /// The gate is full.
    #[error("a gate has at most {GATE_INPUTS_MAX} inputs")]
    TooMany,
}
