//! Alignment: when a barrier that comes on several inputs goes on, and which inputs wait
//! for it.
//!
//! The state machine is pure. It is told what came on which input and at what time, and it
//! answers with facts: what to forward, what to answer negatively, which inputs may be
//! polled again. It leans on one property of an edge: barriers that travel in order carry
//! ascending ids. So a barrier that came in order on an input proves that no lower id
//! follows on that input. An unaligned barrier overtakes and proves nothing.
//!
//! - *Aligned*: an input that delivered waits until every other input has delivered or
//!   ended; then the barrier is forwarded once.
//! - *Unaligned*: the first delivery is forwarded at once and nobody waits; the inputs that
//!   have not delivered are to be recorded until they do.
//! - The mode of an id is that of its first delivery. Only [`Alignment::escalate`] changes
//!   it, from aligned to unaligned.
//! - An id that some input provably never brings can't complete. It is superseded: its
//!   inputs are released and it is answered negatively. A terminal barrier is the exception:
//!   its input has ended for every lower id, and an ended input counts as arrived.
//! - An id that was forwarded, aborted, superseded or refused is dead: deliveries of it
//!   neither pause nor forward.

mod dead;
mod fact;
mod input;
mod pending;
mod progress;

use std::collections::BTreeMap;

use crate::clock::Monotonic;
use crate::element::{Barrier, BarrierMode};
use crate::limits::{GATE_INPUTS_MAX, PENDING_BARRIERS_MAX};

pub use fact::{AddRefused, AlignFact, BarrierRefused};

use dead::DeadIds;
use input::{Input, InputState};
use pending::{Arrival, Pending};

/// Alignment of barriers over the inputs of one subtask.
///
/// Every change returns the facts that follow from it, in the order in which they are to be
/// acted on. Input numbers are those of [`Alignment::new`] and [`Alignment::add_input`].
#[derive(Clone, Debug)]
pub struct Alignment {
    inputs: Vec<Input>,
    pending: BTreeMap<u64, Pending>,
    dead: DeadIds,
    open_count: usize,
    paused_count: usize,
    failed: bool,
}

impl Alignment {
    /// An alignment over the open inputs `0..inputs`.
    ///
    /// # Panics
    ///
    /// Panics where `inputs` exceeds [`GATE_INPUTS_MAX`]: the plan refuses that earlier.
    pub fn new(inputs: usize) -> Self {
        assert!(
            inputs <= GATE_INPUTS_MAX,
            "a gate has at most {GATE_INPUTS_MAX} inputs"
        );
        Self {
            inputs: vec![Input::new(None); inputs],
            pending: BTreeMap::new(),
            dead: DeadIds::default(),
            open_count: inputs,
            paused_count: 0,
            failed: false,
        }
    }

    /// A barrier came on an input at `now`.
    ///
    /// A barrier on a closed input, a duplicate, and a delivery of a dead id are
    /// [`AlignFact::Late`]. They still prove that lower ids don't follow.
    ///
    /// A barrier that overtook elements of its input must not wait in line with them: where
    /// its id may be waiting as aligned, call [`Alignment::escalate`] first.
    ///
    /// # Panics
    ///
    /// Panics where there is no such input.
    pub fn on_barrier(&mut self, input: usize, barrier: Barrier, now: Monotonic) -> Vec<AlignFact> {
        let mut facts = Vec::new();
        let late = self.is_late(input, barrier.id);
        if self.inputs[input].is_open() && !barrier.mode.is_unaligned() {
            self.pass_over_lower_ids(input, barrier, &mut facts);
        }
        if late {
            facts.push(AlignFact::Late { id: barrier.id });
        } else if let Some(refusal) = self.refusal(barrier.id) {
            self.dead.insert(barrier.id);
            facts.push(refusal);
        } else {
            self.deliver(input, barrier, now, &mut facts);
        }
        self.assert_invariants();
        facts
    }

    /// An input ended or was stopped: it counts as arrived for every id. Telling it twice
    /// changes nothing. Barriers that this completes are forwarded in the order of their ids.
    ///
    /// # Panics
    ///
    /// Panics where there is no such input.
    pub fn on_input_closed(&mut self, input: usize) -> Vec<AlignFact> {
        let mut facts = Vec::new();
        if self.close(input, InputState::Ended) {
            let waiting = self.pending_without(input, ..);
            for id in waiting {
                self.arrive(id, input, Arrival::Ended, &mut facts);
            }
        }
        self.assert_invariants();
        facts
    }

    /// An input failed or was cancelled: nothing that is pending can complete, and no later
    /// id can. An input that had ended before can't fail.
    ///
    /// # Panics
    ///
    /// Panics where there is no such input.
    pub fn on_input_failed(&mut self, input: usize) -> Vec<AlignFact> {
        let mut facts = Vec::new();
        if self.close(input, InputState::Failed) {
            self.failed = true;
            let ids: Vec<u64> = self.pending.keys().copied().collect();
            for id in ids {
                self.bury(id, AlignFact::Aborted { id }, &mut facts);
            }
        }
        self.assert_invariants();
        facts
    }

    /// The checkpoint was aborted elsewhere. Its inputs are released, and deliveries of it
    /// that still come are late. An id that is not known yet is remembered as dead.
    pub fn abort(&mut self, id: u64) -> Vec<AlignFact> {
        let mut facts = Vec::new();
        if self.pending.contains_key(&id) {
            self.bury(id, AlignFact::Aborted { id }, &mut facts);
        } else {
            self.dead.insert(id);
        }
        self.assert_invariants();
        facts
    }

    /// Turns an aligned barrier that waits into an unaligned one: it is forwarded at once as
    /// unaligned, and its inputs are released. Does nothing for an id that is not waiting.
    pub fn escalate(&mut self, id: u64) -> Vec<AlignFact> {
        let mut facts = Vec::new();
        if let Some(pending) = self.pending.get_mut(&id)
            && !pending.forwarded
        {
            pending.barrier.mode = BarrierMode::UNALIGNED;
            pending.forwarded = true;
            facts.push(pending.forward(true));
            let holders = pending.delivered_inputs();
            self.release(&holders, &mut facts);
        }
        self.assert_invariants();
        facts
    }

    /// Adds an open input and returns its number. Ids that were settled before it joined are
    /// late on it.
    ///
    /// # Errors
    ///
    /// [`AddRefused::Pending`] while a barrier is pending: try again after it went on or was
    /// aborted. [`AddRefused::Terminated`] after the terminal barrier, and
    /// [`AddRefused::TooMany`] at [`GATE_INPUTS_MAX`] inputs: the input has to go elsewhere.
    pub fn add_input(&mut self) -> Result<usize, AddRefused> {
        if let Some(&id) = self.pending.keys().next() {
            return Err(AddRefused::Pending { id });
        }
        if self.inputs.len() >= GATE_INPUTS_MAX {
            return Err(AddRefused::TooMany);
        }
        self.settle();
        if self.dead.settled() == Some(u64::MAX) {
            return Err(AddRefused::Terminated);
        }
        self.inputs.push(Input::new(self.dead.settled()));
        self.open_count += 1;
        Ok(self.inputs.len() - 1)
    }

    /// Number of inputs, closed ones included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Whether nothing may be taken from this input: it waits for a barrier, or is closed.
    ///
    /// A barrier that overtakes may be delivered on a waiting input nevertheless, and so may
    /// its end.
    pub fn is_paused(&self, input: usize) -> bool {
        !self.inputs[input].is_open() || self.inputs[input].holds > 0
    }

    /// Whether this input ended or failed.
    pub fn is_closed(&self, input: usize) -> bool {
        !self.inputs[input].is_open()
    }

    /// Whether every input ended or failed.
    pub fn all_closed(&self) -> bool {
        self.open_count == 0
    }

    /// Whether an open input waits for a barrier.
    pub fn blocked(&self) -> bool {
        self.paused_count > 0
    }

    /// The open inputs on which this id is still to come; all open ones for an id that is
    /// not pending.
    pub fn pending_inputs(&self, id: u64) -> Vec<usize> {
        match self.pending.get(&id) {
            Some(pending) => pending.missing_inputs(),
            None => (0..self.inputs.len())
                .filter(|&i| self.inputs[i].is_open())
                .collect(),
        }
    }

    /// The inputs whose elements belong to the channel state of this id until they deliver
    /// it: none unless the id was forwarded as unaligned and is still pending.
    pub fn recording_inputs(&self, id: u64) -> Vec<usize> {
        match self.pending.get(&id) {
            Some(pending) if pending.forwarded => pending.missing_inputs(),
            _ => Vec::new(),
        }
    }

    /// When a pending id was first delivered.
    pub fn first_delivery(&self, id: u64) -> Option<Monotonic> {
        self.pending.get(&id).map(|pending| pending.first_at)
    }

    /// The aligned barriers that wait, by ascending id, each with the time of its first
    /// delivery: what an alignment timeout is measured from.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, Monotonic)> + '_ {
        self.pending
            .iter()
            .filter(|(_, pending)| !pending.forwarded)
            .map(|(&id, pending)| (id, pending.first_at))
    }

    fn assert_invariants(&self) {
        debug_assert!(self.pending.len() <= PENDING_BARRIERS_MAX);
        debug_assert!(
            self.pending
                .values()
                .all(|pending| pending.missing_count > 0)
        );
        debug_assert!(self.pending.keys().all(|&id| !self.dead.contains(id)));
        debug_assert!(self.open_count <= self.inputs.len());
        debug_assert!(self.paused_count <= self.open_count);
        debug_assert!(!self.failed || self.pending.is_empty());
    }
}

#[cfg(test)]
mod tests;
