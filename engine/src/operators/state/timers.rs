//! Times at which an operator wants to act, by key.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use crate::clock::ProcessingTime;
use crate::element::EventTime;

/// The timers of an operator, in both kinds of time.
#[derive(Clone, Debug, Default)]
pub struct Timers<K> {
    /// Due when a watermark reaches their time.
    pub event: TimerQueue<K, EventTime>,
    /// Due when the clock reaches their time.
    pub processing: TimerQueue<K, ProcessingTime>,
}

/// Timers in one kind of time. They come by time, those of one time in the order in which
/// they were set. A key has at most one timer at a time.
#[derive(Clone, Debug)]
pub struct TimerQueue<K, Time = i64> {
    by_time: BTreeMap<(Time, u64), K>,
    numbers: HashMap<(Time, K), u64>,
    next_number: u64,
}

impl<K, Time> Default for TimerQueue<K, Time> {
    fn default() -> Self {
        Self {
            by_time: BTreeMap::new(),
            numbers: HashMap::new(),
            next_number: 0,
        }
    }
}

impl<K: Eq + Hash + Clone, Time: Copy + Ord + Hash> TimerQueue<K, Time> {
    /// Sets a timer of `key` at `time`; one that is set already stays.
    pub fn set(&mut self, time: Time, key: K) {
        let number = self.next_number;
        if let std::collections::hash_map::Entry::Vacant(vacant) =
            self.numbers.entry((time, key.clone()))
        {
            vacant.insert(number);
            self.by_time.insert((time, number), key);
            self.next_number += 1;
        }
    }

    /// Takes back the timer of `key` at `time`; returns whether there was one.
    pub fn cancel(&mut self, time: Time, key: K) -> bool {
        let number = self.numbers.remove(&(time, key));
        number.is_some_and(|number| self.by_time.remove(&(time, number)).is_some())
    }

    /// The next timer that is due at `now`, which is then no longer set.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, K)> {
        let first = self.by_time.first_entry()?;
        let (time, _) = *first.key();
        if time > now {
            return None;
        }
        let key = first.remove();
        self.numbers.remove(&(time, key.clone()));
        Some((time, key))
    }

    /// The time of the next timer.
    pub fn next(&self) -> Option<Time> {
        self.by_time.first_key_value().map(|((time, _), _)| *time)
    }

    /// Timers that are set.
    pub fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Whether no timer is set.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_by_time_and_then_as_they_were_set() {
        let mut timers = TimerQueue::default();
        timers.set(5, 'b');
        timers.set(5, 'a');
        timers.set(3, 'z');
        timers.set(5, 'b');
        timers.set(9, 'c');
        assert!(timers.cancel(9, 'c'));
        assert!(!timers.cancel(9, 'c'));
        assert_eq!(timers.next(), Some(3));
        assert_eq!(timers.pop_due(2), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(5)).collect();
        assert_eq!(due, [(3, 'z'), (5, 'b'), (5, 'a')]);
        assert!(timers.is_empty());
    }
}
