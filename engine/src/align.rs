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

use std::collections::BTreeMap;
use std::ops::RangeBounds;

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
    /// aborted. [`AddRefused::TooMany`] at [`GATE_INPUTS_MAX`] inputs.
    pub fn add_input(&mut self) -> Result<usize, AddRefused> {
        if let Some(&id) = self.pending.keys().next() {
            return Err(AddRefused::Pending { id });
        }
        if self.inputs.len() >= GATE_INPUTS_MAX {
            return Err(AddRefused::TooMany);
        }
        self.settle();
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

    /// Whether a delivery can change nothing any more: its input is closed, the id is dead,
    /// or the input delivered or passed it over before.
    fn is_late(&self, input: usize, id: u64) -> bool {
        let from = &self.inputs[input];
        if !from.is_open() {
            return true;
        }
        match self.pending.get(&id) {
            Some(pending) => pending.arrivals[input] != Arrival::Missing,
            None => from.in_order_max.is_some_and(|max| id <= max) || self.dead.contains(id),
        }
    }

    /// Draws the conclusion from a barrier that came in order: lower ids that have not come
    /// on this input never come.
    fn pass_over_lower_ids(&mut self, input: usize, barrier: Barrier, facts: &mut Vec<AlignFact>) {
        self.inputs[input].came_in_order(barrier);
        for id in self.pending_without(input, ..barrier.id) {
            if barrier.terminal {
                self.arrive(id, input, Arrival::Ended, facts);
            } else {
                self.bury(id, AlignFact::Superseded { id }, facts);
            }
        }
    }

    /// Why an id that is delivered for the first time can't be taken up, if it can't.
    fn refusal(&self, id: u64) -> Option<AlignFact> {
        let refused = |why| Some(AlignFact::Refused { id, why });
        if self.pending.contains_key(&id) {
            None
        } else if self.failed {
            refused(BarrierRefused::InputFailed)
        } else if self.dead.may_have_forgotten(id) {
            refused(BarrierRefused::Forgotten)
        } else if self.inputs.iter().any(|input| input.never_brings(id)) {
            Some(AlignFact::Superseded { id })
        } else if self.pending.len() >= PENDING_BARRIERS_MAX {
            refused(BarrierRefused::TooManyPending)
        } else {
            None
        }
    }

    /// Takes up a delivery that counts.
    fn deliver(
        &mut self,
        input: usize,
        barrier: Barrier,
        now: Monotonic,
        facts: &mut Vec<AlignFact>,
    ) {
        let inputs = &self.inputs;
        let pending = self.pending.entry(barrier.id).or_insert_with(|| {
            let arrivals = inputs.iter().map(|input| input.arrival_for(barrier.id));
            Pending::new(barrier, now, arrivals.collect())
        });
        pending.barrier.terminal |= barrier.terminal;
        if pending.barrier.mode.is_unaligned() && !pending.forwarded {
            pending.forwarded = true;
            facts.push(pending.forward(true));
        }
        self.arrive(barrier.id, input, Arrival::Delivered, facts);
    }

    /// Notes that an input arrived for a pending id, and completes the id where it was the
    /// last one.
    fn arrive(&mut self, id: u64, input: usize, arrival: Arrival, facts: &mut Vec<AlignFact>) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        pending.missing_count -= 1;
        if pending.missing_count > 0 {
            let waits = arrival == Arrival::Delivered && !pending.forwarded;
            pending.arrivals[input] = arrival;
            if waits {
                self.hold(input);
            }
            return;
        }
        let fact = if pending.forwarded {
            AlignFact::RecordingsClosed { id }
        } else {
            pending.forward(false)
        };
        self.bury(id, fact, facts);
        self.settle();
    }

    /// Takes out an id that is over, says how, and releases the inputs that waited for it.
    fn bury(&mut self, id: u64, fact: AlignFact, facts: &mut Vec<AlignFact>) {
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        self.dead.insert(id);
        facts.push(fact);
        if !pending.forwarded {
            self.release(&pending.delivered_inputs(), facts);
        }
    }

    /// Forgets dead ids that every open input has brought or passed over: they are late by
    /// the order of the edges alone.
    fn settle(&mut self) {
        let open = self.inputs.iter().filter(|input| input.is_open());
        if let Some(Some(id)) = open.map(|input| input.in_order_max).min() {
            self.dead.settle_up_to(id);
        }
    }

    /// Closes an open input. Returns whether it was open.
    fn close(&mut self, input: usize, state: InputState) -> bool {
        if !self.inputs[input].is_open() {
            return false;
        }
        self.inputs[input].state = state;
        self.open_count -= 1;
        if self.inputs[input].holds > 0 {
            self.paused_count -= 1;
        }
        true
    }

    fn hold(&mut self, input: usize) {
        let held = &mut self.inputs[input];
        held.holds += 1;
        if held.holds == 1 && held.is_open() {
            self.paused_count += 1;
        }
    }

    fn release(&mut self, holders: &[usize], facts: &mut Vec<AlignFact>) {
        for &input in holders {
            let held = &mut self.inputs[input];
            held.holds -= 1;
            if held.holds == 0 && held.is_open() {
                self.paused_count -= 1;
                facts.push(AlignFact::Released { input });
            }
        }
    }

    /// The pending ids of a range for which this input has not arrived, ascending.
    fn pending_without(&self, input: usize, ids: impl RangeBounds<u64>) -> Vec<u64> {
        self.pending
            .range(ids)
            .filter(|(_, pending)| pending.arrivals[input] == Arrival::Missing)
            .map(|(&id, _)| id)
            .collect()
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
