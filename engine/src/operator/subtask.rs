//! Which of an operator's parallel instances this is.

use std::ops::Range;

use crate::partition::{Parallelism, key_group_range};

/// One parallel instance of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtask {
    /// The operator's uid, by which its state is found again.
    pub uid: String,
    /// The operator's name, for people.
    pub name: String,
    /// Which instance this is, from 0.
    pub index: u32,
    /// How many instances there are.
    pub parallelism: Parallelism,
}

impl Subtask {
    /// The only instance of an operator that runs with parallelism 1.
    pub fn single(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            uid: name.clone(),
            name,
            index: 0,
            parallelism: Parallelism::ONE,
        }
    }

    /// The key groups whose keys come to this instance.
    pub fn key_groups(&self) -> Range<u32> {
        key_group_range(self.index, self.parallelism)
    }
}

impl std::fmt::Display for Subtask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.name, self.index)
    }
}
