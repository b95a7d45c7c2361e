//! What an alignment knows of one input.

use super::pending::Arrival;
use crate::element::Barrier;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputState {
    Open,
    Ended,
    Failed,
}

#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) state: InputState,
    /// Aligned barriers that this input delivered and that wait for others.
    pub(super) holds: usize,
    /// The highest id that came in order: no id up to it is still to come.
    pub(super) in_order_max: Option<u64>,
    /// The highest terminal id that came in order: the input ended for every lower id.
    terminal_max: Option<u64>,
}

impl Input {
    /// An open input on which ids up to `settled` are late.
    pub(super) fn new(settled: Option<u64>) -> Self {
        Self {
            state: InputState::Open,
            holds: 0,
            in_order_max: settled,
            terminal_max: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == InputState::Open
    }

    /// Notes a barrier that came in order. One that comes again, or out of turn, proves
    /// nothing new.
    pub(super) fn came_in_order(&mut self, barrier: Barrier) {
        if self.in_order_max.is_none_or(|max| max < barrier.id) {
            self.in_order_max = Some(barrier.id);
            if barrier.terminal {
                self.terminal_max = Some(barrier.id);
            }
        }
    }

    /// How far this input is for an id that it has not delivered.
    pub(super) fn arrival_for(&self, id: u64) -> Arrival {
        if !self.is_open() || self.ended_for(id) {
            Arrival::Ended
        } else {
            Arrival::Missing
        }
    }

    /// Whether this input went past an id without it, so that the id can't complete.
    pub(super) fn never_brings(&self, id: u64) -> bool {
        let past = self.in_order_max.is_some_and(|max| max > id);
        self.is_open() && past && !self.ended_for(id)
    }

    fn ended_for(&self, id: u64) -> bool {
        self.terminal_max.is_some_and(|max| max > id)
    }
}
