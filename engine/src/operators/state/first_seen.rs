//! Which keys were seen, for how long.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::element::EventTime;
use crate::operators::aggregate::FastHash;
use crate::operators::gather::STEP_ITEMS_MAX;

/// What a row is among those of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The first.
    First,
    /// One after the first.
    Again,
    /// It cannot be known: the row is behind the watermark, or has no event time.
    Late,
}

/// The time of the first row of each key, for a time to live in event time.
pub(crate) struct FirstSeen<K> {
    ttl_ms: Option<u64>,
    first: HashMap<K, EventTime, FastHash>,
    /// The keys by the time of their first row; one that had another since comes twice.
    due: BTreeMap<(EventTime, u64), K>,
    next_number: u64,
    watermark: Option<EventTime>,
}

impl<K: Eq + Hash + Clone> FirstSeen<K> {
    /// Keys are remembered for `ttl_ms` from their first row on, or for ever.
    pub(crate) fn new(ttl_ms: Option<u64>) -> Self {
        Self {
            ttl_ms,
            first: HashMap::default(),
            due: BTreeMap::new(),
            next_number: 0,
            watermark: None,
        }
    }

    /// Whether a row of this time is the first of its key; it is remembered then.
    pub(crate) fn see(&mut self, key: &K, time: Option<EventTime>) -> Seen {
        let Some(ttl_ms) = self.ttl_ms else {
            if self.first.contains_key(key) {
                return Seen::Again;
            }
            self.first.insert(key.clone(), 0);
            return Seen::First;
        };
        let time = match time {
            Some(time) if Some(time) >= self.watermark => time,
            _ => return Seen::Late,
        };
        if let Some(first) = self.first.get_mut(key) {
            if !is_past(*first, ttl_ms, time) {
                return Seen::Again;
            }
            *first = time;
        } else {
            self.first.insert(key.clone(), time);
        }
        self.due.insert((time, self.next_number), key.clone());
        self.next_number += 1;
        Seen::First
    }

    /// Whether the key is remembered.
    pub(crate) fn knows(&self, key: &K) -> bool {
        self.first.contains_key(key)
    }

    /// A watermark has come.
    pub(crate) fn advance(&mut self, watermark: EventTime) {
        self.watermark = self.watermark.max(Some(watermark));
    }

    /// Forgets some of the keys whose time is past, and tells which; returns whether that is
    /// all.
    pub(crate) fn forget_some(&mut self, forgotten: &mut dyn FnMut(&K)) -> bool {
        let (Some(ttl_ms), Some(watermark)) = (self.ttl_ms, self.watermark) else {
            return true;
        };
        for _ in 0..STEP_ITEMS_MAX {
            let Some(oldest) = self.due.first_entry() else {
                return true;
            };
            let (time, _) = *oldest.key();
            if watermark < EventTime::MAX && !is_past(time, ttl_ms, watermark) {
                return true;
            }
            let key = oldest.remove();
            if self.first.get(&key) == Some(&time) {
                self.first.remove(&key);
                forgotten(&key);
            }
        }
        false
    }

    /// Keys that are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }
}

/// Whether at `time` the key whose first row was at `first` is to be forgotten.
fn is_past(first: EventTime, ttl_ms: u64, time: EventTime) -> bool {
    i128::from(first) + i128::from(ttl_ms) <= i128::from(time)
}
