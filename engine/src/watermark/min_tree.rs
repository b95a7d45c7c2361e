//! The minimum of many values that change one at a time.

use crate::element::{EVENT_TIME_MAX, EventTime};

/// A tournament: each inner node holds the lower of its two children, so that a change
/// costs the height of the tree, and usually less: it stops where nothing changes.
#[derive(Clone, Debug)]
pub(super) struct MinTree {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`; the upper half are
    /// the leaves. Leaves without a value never win.
    nodes: Vec<EventTime>,
    len: usize,
}

impl MinTree {
    pub(super) fn new(len: usize, value: EventTime) -> Self {
        let mut tree = Self {
            nodes: vec![EVENT_TIME_MAX; 2],
            len: 0,
        };
        for _ in 0..len {
            tree.push(value);
        }
        tree
    }

    /// The lowest value, the end of time where there is none.
    pub(super) fn min(&self) -> EventTime {
        self.nodes[1]
    }

    pub(super) fn value(&self, index: usize) -> EventTime {
        assert!(index < self.len, "there is no input {index}");
        self.nodes[self.leaves() + index]
    }

    pub(super) fn set(&mut self, index: usize, value: EventTime) {
        assert!(index < self.len, "there is no input {index}");
        let mut node = self.leaves() + index;
        self.nodes[node] = value;
        while node > 1 {
            node /= 2;
            let lower = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == lower {
                break;
            }
            self.nodes[node] = lower;
        }
    }

    pub(super) fn push(&mut self, value: EventTime) {
        if self.len == self.leaves() {
            self.grow();
        }
        self.len += 1;
        self.set(self.len - 1, value);
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    fn grow(&mut self) {
        let values = self.nodes.split_off(self.leaves());
        let leaves = 2 * values.len();
        self.nodes = vec![EVENT_TIME_MAX; leaves];
        self.nodes.extend(&values);
        self.nodes.resize(2 * leaves, EVENT_TIME_MAX);
        for node in (1..leaves).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_that_of_all_values_whatever_their_number() {
        for len in 0..40_usize {
            let mut tree = MinTree::new(0, 0);
            assert_eq!(tree.min(), EVENT_TIME_MAX);
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
