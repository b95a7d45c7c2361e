//! A naive model of merged watermarks.

use ringway::element::{EVENT_TIME_MAX, EVENT_TIME_MIN, Watermark};

/// The naive merge: every rule as it is written down, the minimum looked for each time.
#[derive(Clone, Debug)]
pub(crate) struct MergeModel {
    times: Vec<i64>,
    idle: Vec<bool>,
    closed: Vec<bool>,
    emitted: i64,
    last_idle: bool,
}

impl MergeModel {
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            times: vec![EVENT_TIME_MIN; inputs],
            idle: vec![false; inputs],
            closed: vec![false; inputs],
            emitted: EVENT_TIME_MIN,
            last_idle: false,
        }
    }

    pub(crate) fn on_watermark(&mut self, input: usize, watermark: Watermark) -> Option<Watermark> {
        if !self.closed[input] {
            if watermark.idle {
                self.idle[input] = true;
                self.times[input] = EVENT_TIME_MAX;
            } else if self.idle[input] {
                self.idle[input] = false;
                self.times[input] = watermark.timestamp.max(self.emitted);
            } else {
                self.times[input] = self.times[input].max(watermark.timestamp);
            }
        }
        self.refresh()
    }

    pub(crate) fn close(&mut self, input: usize) {
        self.closed[input] = true;
        self.times[input] = EVENT_TIME_MAX;
    }

    pub(crate) fn refresh(&mut self) -> Option<Watermark> {
        let open: Vec<usize> = (0..self.times.len()).filter(|&i| !self.closed[i]).collect();
        if !open.is_empty() && open.iter().all(|&i| self.idle[i]) {
            let first = !self.last_idle;
            self.last_idle = true;
            return first.then_some(Watermark {
                timestamp: self.emitted,
                idle: true,
            });
        }
        let min = self.times.iter().copied().min()?;
        if self.last_idle || min > self.emitted {
            self.last_idle = false;
            self.emitted = min;
            return Some(Watermark {
                timestamp: min,
                idle: false,
            });
        }
        None
    }

    pub(crate) fn add_input(&mut self) -> usize {
        self.times.push(self.emitted);
        self.idle.push(false);
        self.closed.push(false);
        self.times.len() - 1
    }

    pub(crate) fn current(&self) -> i64 {
        self.emitted
    }
}
