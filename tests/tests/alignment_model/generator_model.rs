//! A naive model of a source's watermarks: every poll looks at the whole history.

use ringway::element::Watermark;

/// What a source told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Announced(u64, Option<i64>),
    Opened(u64),
    Record(u64, Option<i64>),
    Finished(u64),
    Poll(i64),
}

/// The naive generator, with a watermark for each split.
#[derive(Debug)]
pub(crate) struct GeneratorModel {
    pub(crate) bound_ms: u64,
    pub(crate) idle_after_ms: Option<u64>,
    pub(crate) history: Vec<Told>,
    current: i64,
    idle: bool,
}

impl GeneratorModel {
    pub(crate) fn new(bound_ms: u64, idle_after_ms: Option<u64>) -> Self {
        Self {
            bound_ms,
            idle_after_ms,
            history: Vec::new(),
            current: i64::MIN,
            idle: false,
        }
    }

    pub(crate) fn poll(&mut self, now_ms: i64) -> Option<Watermark> {
        self.history.push(Told::Poll(now_ms));
        let splits: Vec<u64> = (0..SPLITS).filter(|&split| self.is_known(split)).collect();
        let held: Vec<u64> = splits
            .iter()
            .copied()
            .filter(|&split| !self.is_quiet(split, now_ms))
            .collect();
        let last = self
            .history
            .iter()
            .rposition(|told| !matches!(told, Told::Poll(_)));
        if held.is_empty() && self.long_after(last, now_ms) {
            let first = !self.idle;
            self.idle = true;
            return first.then_some(Watermark::idle(self.current));
        }
        let lowest = held.iter().map(|&split| self.watermark(split)).min();
        let next = lowest.unwrap_or(self.current).max(self.current);
        let speaks = self.idle || next > self.current;
        self.idle = false;
        self.current = next;
        speaks.then_some(Watermark::active(next))
    }

    /// The part of the history since the split became known, if it still is.
    fn life(&self, split: u64) -> &[Told] {
        let finished = self
            .history
            .iter()
            .rposition(|&told| told == Told::Finished(split));
        &self.history[finished.map_or(0, |at| at + 1)..]
    }

    pub(crate) fn is_known(&self, split: u64) -> bool {
        self.life(split).iter().any(|&told| match told {
            Told::Announced(of, _) | Told::Opened(of) => of == split,
            _ => false,
        })
    }

    pub(crate) fn is_open(&self, split: u64) -> bool {
        self.life(split).contains(&Told::Opened(split))
    }

    fn is_quiet(&self, split: u64, now_ms: i64) -> bool {
        let touched = self.history.iter().rposition(|&told| match told {
            Told::Opened(of) | Told::Record(of, _) => of == split,
            _ => false,
        });
        self.is_open(split) && self.long_after(touched, now_ms)
    }

    /// Whether the first poll after a place in the history is as long ago as idleness takes.
    fn long_after(&self, place: Option<usize>, now_ms: i64) -> bool {
        let after = &self.history[place.map_or(0, |at| at + 1)..];
        let polled = after.iter().find_map(|told| match *told {
            Told::Poll(at) => Some(at),
            _ => None,
        });
        match (self.idle_after_ms, polled) {
            (Some(quiet_ms), Some(at)) => now_ms >= at + quiet_ms as i64,
            _ => false,
        }
    }

    fn watermark(&self, split: u64) -> i64 {
        let life = self.life(split).iter();
        let records = life.clone().filter_map(|told| match *told {
            Told::Record(of, time) if of == split => time,
            _ => None,
        });
        let behind = records
            .max()
            .map(|max| max.saturating_sub(self.bound_ms as i64));
        let earliest = life.rev().find_map(|told| match *told {
            Told::Announced(of, earliest) if of == split => Some(earliest.unwrap_or(i64::MIN)),
            _ => None,
        });
        behind.max(earliest).unwrap_or(i64::MIN)
    }
}

/// The splits of the model are `0..SPLITS`.
pub(crate) const SPLITS: u64 = 4;
