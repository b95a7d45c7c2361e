//! Keys by the time at which a row of theirs is due.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::element::EventTime;

/// Keys by time; those of one time by a number that each has.
///
/// Rows come mostly in the order of their times, so most keys go to the end of a queue; only
/// those that come out of order take the cost of a heap.
pub(crate) struct DueKeys<K> {
    in_order: VecDeque<DueKey<K>>,
    others: BinaryHeap<Reverse<DueKey<K>>>,
}

struct DueKey<K> {
    time: EventTime,
    number: u64,
    key: K,
}

impl<K> DueKeys<K> {
    /// Adds a key with a number that no other of this time has.
    #[inline]
    pub(crate) fn push(&mut self, time: EventTime, number: u64, key: K) {
        let due = DueKey { time, number, key };
        match self.in_order.back() {
            Some(last) if *last > due => self.others.push(Reverse(due)),
            _ => self.in_order.push_back(due),
        }
    }

    /// The earliest time.
    pub(crate) fn next_time(&self) -> Option<EventTime> {
        let in_order = self.in_order.front().map(|due| due.time);
        let other = self.others.peek().map(|Reverse(due)| due.time);
        match (in_order, other) {
            (Some(in_order), Some(other)) => Some(in_order.min(other)),
            (in_order, other) => in_order.or(other),
        }
    }

    /// The key that is due first, with its time and number.
    pub(crate) fn pop(&mut self) -> Option<(EventTime, u64, K)> {
        match (self.in_order.front(), self.others.peek()) {
            (Some(in_order), other) if other.is_none_or(|Reverse(other)| in_order < other) => {
                let due = self.in_order.pop_front()?;
                Some((due.time, due.number, due.key))
            }
            _ => {
                let due = self.others.pop()?.0;
                Some((due.time, due.number, due.key))
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.in_order.len() + self.others.len()
    }
}

impl<K> DueKey<K> {
    /// Time and number as one, which the processor compares without a branch: which of two keys
    /// in a heap is first can't be foreseen.
    #[inline]
    fn order(&self) -> i128 {
        (i128::from(self.time) << 64) | i128::from(self.number)
    }
}

impl<K> Default for DueKeys<K> {
    fn default() -> Self {
        Self {
            in_order: VecDeque::new(),
            others: BinaryHeap::new(),
        }
    }
}

/// The key takes no part: no two have the same number.
impl<K> Ord for DueKey<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// The operators of their own, because those that are made of the order have branches.
impl<K> PartialOrd for DueKey<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.order() < other.order()
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.order() <= other.order()
    }

    #[inline]
    fn gt(&self, other: &Self) -> bool {
        self.order() > other.order()
    }

    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.order() >= other.order()
    }
}

impl<K> PartialEq for DueKey<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K> Eq for DueKey<K> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::testing::Random;

    #[test]
    fn keys_come_by_time_and_then_by_number() {
        let mut random = Random::new("keys_come_by_time_and_then_by_number");
        let (mut due, mut model) = (DueKeys::default(), Vec::new());
        for number in 0..1000_u64 {
            let time = number as i64 / 8 + random.between(-3, 3);
            let number = number ^ random.below(2) << 20;
            due.push(time, number, ());
            model.push((time, number, ()));
            if random.below(3) == 0 {
                model.sort_unstable();
                let first = model.remove(0);
                assert_eq!(due.next_time(), Some(first.0));
                assert_eq!(due.pop(), Some(first));
            }
        }
        model.sort_unstable();
        assert_eq!(due.len(), model.len());
        assert!(std::iter::from_fn(|| due.pop()).eq(model));
    }
}
