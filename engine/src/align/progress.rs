//! How an id gets from its first delivery to its end.

use std::ops::RangeBounds;

use super::input::InputState;
use super::pending::{Arrival, Pending};
use super::{AlignFact, Alignment, BarrierRefused};
use crate::clock::Monotonic;
use crate::element::Barrier;
use crate::limits::PENDING_BARRIERS_MAX;

impl Alignment {
    /// Whether a delivery can change nothing any more: its input is closed, the id is dead,
    /// or the input delivered or passed it over before.
    pub(super) fn is_late(&self, input: usize, id: u64) -> bool {
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
    pub(super) fn pass_over_lower_ids(
        &mut self,
        input: usize,
        barrier: Barrier,
        facts: &mut Vec<AlignFact>,
    ) {
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
    pub(super) fn refusal(&self, id: u64) -> Option<AlignFact> {
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
    pub(super) fn deliver(
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
    pub(super) fn arrive(
        &mut self,
        id: u64,
        input: usize,
        arrival: Arrival,
        facts: &mut Vec<AlignFact>,
    ) {
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
    pub(super) fn bury(&mut self, id: u64, fact: AlignFact, facts: &mut Vec<AlignFact>) {
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
    pub(super) fn settle(&mut self) {
        let open = self.inputs.iter().filter(|input| input.is_open());
        if let Some(Some(id)) = open.map(|input| input.in_order_max).min() {
            self.dead.settle_up_to(id);
        }
    }

    /// Closes an open input. Returns whether it was open.
    pub(super) fn close(&mut self, input: usize, state: InputState) -> bool {
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

    pub(super) fn release(&mut self, holders: &[usize], facts: &mut Vec<AlignFact>) {
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
    pub(super) fn pending_without(&self, input: usize, ids: impl RangeBounds<u64>) -> Vec<u64> {
        self.pending
            .range(ids)
            .filter(|(_, pending)| pending.arrivals[input] == Arrival::Missing)
            .map(|(&id, _)| id)
            .collect()
    }
}
