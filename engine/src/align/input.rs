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
    /// That highest id was terminal: the input ended before every lower id.
    terminal: bool,
}

impl Input {
    /// An open input on which ids up to `settled` are late.
    pub(super) fn new(settled: Option<u64>) -> Self {
        Self {
            state: InputState::Open,
            holds: 0,
            in_order_max: settled,
            terminal: false,
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
            self.terminal = barrier.terminal;
        }
    }

    /// How far this input is for an id that it has not delivered.
    pub(super) fn arrival_for(&self, id: u64) -> Arrival {
        if !self.is_open() || (self.terminal && self.is_past(id)) {
            Arrival::Ended
        } else {
            Arrival::Missing
        }
    }

    /// Whether this input went past an id without it, so that the id can't complete.
    pub(super) fn never_brings(&self, id: u64) -> bool {
        self.is_open() && self.is_past(id) && !self.terminal
    }

    fn is_past(&self, id: u64) -> bool {
        self.in_order_max.is_some_and(|max| max > id)
    }
}
