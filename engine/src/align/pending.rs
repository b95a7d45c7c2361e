//! One id that has been delivered on some inputs and not yet on all.

use super::fact::AlignFact;
use crate::clock::Monotonic;
use crate::element::Barrier;

/// How far one input is for one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Missing,
    Delivered,
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Pending {
    /// The barrier as it is forwarded.
    pub(super) barrier: Barrier,
    pub(super) first_at: Monotonic,
    /// Forwarded as unaligned; what is left is to record the missing inputs.
    pub(super) forwarded: bool,
    pub(super) arrivals: Vec<Arrival>,
    /// Counted, so that a barrier over many inputs costs one look at each of them.
    pub(super) missing_count: usize,
}

impl Pending {
    pub(super) fn new(barrier: Barrier, first_at: Monotonic, arrivals: Vec<Arrival>) -> Self {
        let missing_count = arrivals
            .iter()
            .filter(|&&arrival| arrival == Arrival::Missing)
            .count();
        Self {
            barrier,
            first_at,
            forwarded: false,
            arrivals,
            missing_count,
        }
    }

    pub(super) fn forward(&self, unaligned_first: bool) -> AlignFact {
        AlignFact::Forward {
            barrier: self.barrier,
            unaligned_first,
            first_at: self.first_at,
        }
    }

    pub(super) fn missing_inputs(&self) -> Vec<usize> {
        self.inputs_that(Arrival::Missing)
    }

    pub(super) fn delivered_inputs(&self) -> Vec<usize> {
        self.inputs_that(Arrival::Delivered)
    }

    fn inputs_that(&self, arrival: Arrival) -> Vec<usize> {
        (0..self.arrivals.len())
            .filter(|&input| self.arrivals[input] == arrival)
            .collect()
    }
}
