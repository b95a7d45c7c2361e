//! The minimum of many values that change one at a time.

use crate::element::{EVENT_TIME_MAX, EventTime};

/// Values that one node stands for: one cache line of them. Fewer would make the tree higher,
/// more would make a node dearer.
const WIDTH: usize = 8;

/// A tournament: the lowest of each eight values is a value of the next level, up to a level
/// of eight. A change costs one node a level, and usually less: it stops where a node's
/// lowest value stays.
#[derive(Clone, Debug)]
pub(super) struct MinTree {
    /// From the values themselves upwards. Each level is filled up to whole nodes with values
    /// that never win.
    levels: Vec<Vec<EventTime>>,
    len: usize,
    min: EventTime,
}

impl MinTree {
    pub(super) fn new(len: usize, value: EventTime) -> Self {
        let mut values = vec![value; len];
        values.resize(len.next_multiple_of(WIDTH).max(WIDTH), EVENT_TIME_MAX);
        Self::build(values, len)
    }

    /// The lowest value, the end of time where there is none.
    pub(super) fn min(&self) -> EventTime {
        self.min
    }

    pub(super) fn value(&self, index: usize) -> EventTime {
        assert!(index < self.len, "there is no input {index}");
        self.levels[0][index]
    }

    pub(super) fn set(&mut self, index: usize, value: EventTime) {
        assert!(index < self.len, "there is no input {index}");
        self.levels[0][index] = value;
        let mut node = index / WIDTH;
        for level in 1..self.levels.len() {
            let lowest = lowest_of(&self.levels[level - 1], node);
            if self.levels[level][node] == lowest {
                return;
            }
            self.levels[level][node] = lowest;
            node /= WIDTH;
        }
        self.min = lowest_of(&self.levels[self.levels.len() - 1], 0);
    }

    pub(super) fn push(&mut self, value: EventTime) {
        if self.len == self.levels[0].len() {
            let mut values = std::mem::take(&mut self.levels[0]);
            values.resize(2 * values.len(), EVENT_TIME_MAX);
            *self = Self::build(values, self.len);
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    fn build(values: Vec<EventTime>, len: usize) -> Self {
        let mut levels = vec![values];
        loop {
            let below = &levels[levels.len() - 1];
            let nodes = below.len() / WIDTH;
            let mut level: Vec<EventTime> = (0..nodes).map(|node| lowest_of(below, node)).collect();
            if nodes == 1 {
                let min = level[0];
                return Self { levels, len, min };
            }
            level.resize(nodes.next_multiple_of(WIDTH), EVENT_TIME_MAX);
            levels.push(level);
        }
    }
}

fn lowest_of(level: &[EventTime], node: usize) -> EventTime {
    // In pairs, so that the comparisons don't wait for each other.
    let (nodes, _) = level.as_chunks::<WIDTH>();
    let [a, b, c, d, e, f, g, h] = nodes[node];
    (a.min(b).min(c.min(d))).min(e.min(f).min(g.min(h)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_that_of_all_values_whatever_their_number() {
        for len in (0..40_usize).chain([63, 64, 65, 511, 512, 513, 600]) {
            let mut tree = MinTree::new(0, 0);
            assert_eq!(tree.min(), EVENT_TIME_MAX);
            assert_eq!(
                MinTree::new(len, 7).min(),
                if len > 0 { 7 } else { EVENT_TIME_MAX }
            );
            let mut values = Vec::new();
            for i in 0..len {
                let value = (i as i64 * 7919) % 101 - 50;
                tree.push(value);
                values.push(value);
                assert_eq!(Some(tree.min()), values.iter().min().copied());
            }
            for step in 0..4 * len {
                let index = step * 31 % len;
                values[index] = (step as i64 * 104_729) % 97 - 48;
                tree.set(index, values[index]);
                assert_eq!(Some(tree.min()), values.iter().min().copied());
                assert_eq!(tree.value(index), values[index]);
            }
        }
    }
}
