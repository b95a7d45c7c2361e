//! The watermark of a subtask with several inputs.

use super::min_tree::MinTree;
use crate::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, EventTime, Watermark};

/// Merges the watermarks of several inputs into the one to forward.
///
/// The merged watermark is the lowest of the inputs that are neither idle nor closed. It
/// never decreases: an input that becomes active again below it counts as being at it.
/// Nothing is forwarded before every such input has spoken. When all open inputs are idle,
/// that is forwarded once; when all are closed, the end of time is.
///
/// The cost of a watermark grows with the logarithm of the number of inputs at most.
#[derive(Clone, Debug)]
pub struct WatermarkMerge {
    /// What each input holds the minimum at: the end of time while idle or closed.
    times: MinTree,
    inputs: Vec<InputState>,
    open_count: usize,
    /// Open inputs that are idle.
    idle_count: usize,
    current: EventTime,
    /// The last thing forwarded was that all are idle.
    all_idle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputState {
    Active,
    Idle,
    Closed,
}

impl WatermarkMerge {
    /// A merge over the open inputs `0..inputs`, none of which has spoken.
    pub fn new(inputs: usize) -> Self {
        Self {
            times: MinTree::new(inputs, EVENT_TIME_MIN),
            inputs: vec![InputState::Active; inputs],
            open_count: inputs,
            idle_count: 0,
            current: EVENT_TIME_MIN,
            all_idle: false,
        }
    }

    /// A watermark came on an input. Returns the watermark to forward, if any.
    ///
    /// One that is lower than the input's last is ignored, and so is one on a closed input.
    ///
    /// # Panics
    ///
    /// Panics where there is no such input.
    #[must_use = "the watermark is to be forwarded"]
    pub fn on_watermark(&mut self, input: usize, watermark: Watermark) -> Option<Watermark> {
        match (self.inputs[input], watermark.idle) {
            (InputState::Closed, _) | (InputState::Idle, true) => {}
            (InputState::Active, true) => {
                self.inputs[input] = InputState::Idle;
                self.idle_count += 1;
                self.times.set(input, EVENT_TIME_MAX);
            }
            (InputState::Idle, false) => {
                self.inputs[input] = InputState::Active;
                self.idle_count -= 1;
                self.times.set(input, watermark.timestamp.max(self.current));
            }
            (InputState::Active, false) => {
                if watermark.timestamp > self.times.value(input) {
                    self.times.set(input, watermark.timestamp);
                }
            }
        }
        self.refresh()
    }

    /// An input closed: it holds nothing back any more. Closing it twice changes nothing.
    ///
    /// What this releases comes from [`WatermarkMerge::refresh`], which every caller must
    /// call after what else the end of the input sets off.
    ///
    /// # Panics
    ///
    /// Panics where there is no such input.
    pub fn close(&mut self, input: usize) {
        match self.inputs[input] {
            InputState::Closed => return,
            InputState::Idle => self.idle_count -= 1,
            InputState::Active => {}
        }
        self.inputs[input] = InputState::Closed;
        self.open_count -= 1;
        self.times.set(input, EVENT_TIME_MAX);
    }

    /// The watermark to forward now, if any: to be asked after an input was closed.
    #[must_use = "the watermark is to be forwarded"]
    pub fn refresh(&mut self) -> Option<Watermark> {
        if self.open_count > 0 && self.idle_count == self.open_count {
            let first = !self.all_idle;
            self.all_idle = true;
            return first.then(|| Watermark::idle(self.current));
        }
        if self.inputs.is_empty() {
            // Before its first input a subtask has no time, not the end of time.
            return None;
        }
        let min = self.times.min();
        debug_assert!(min >= self.current, "a merged watermark never decreases");
        if self.all_idle || min > self.current {
            // After the news of idleness even an unchanged watermark has something to say:
            // that the stream is active again.
            self.all_idle = false;
            self.current = min;
            return Some(Watermark::active(min));
        }
        None
    }

    /// Adds an open input that holds the merged watermark where it is, and returns its
    /// number.
    pub fn add_input(&mut self) -> usize {
        self.times.push(self.current);
        self.inputs.push(InputState::Active);
        self.open_count += 1;
        self.inputs.len() - 1
    }

    /// The merged watermark: the last active one forwarded.
    pub fn current(&self) -> EventTime {
        self.current
    }

    /// Number of inputs, closed ones included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }
}

#[cfg(test)]
mod tests;
