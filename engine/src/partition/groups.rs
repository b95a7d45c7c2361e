//! Key groups, and which subtask owns which of them.

use std::ops::Range;

use super::fnv::fnv1a64;
use crate::limits::{KEY_GROUPS, PARALLELISM_MAX};

/// The number of subtasks of an operator: 1 to [`PARALLELISM_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parallelism(u32);

impl Parallelism {
    /// One subtask.
    pub const ONE: Self = Self(1);

    /// A checked parallelism.
    ///
    /// # Errors
    ///
    /// [`ParallelismRefused`] for 0, and above the number of key groups, where some subtasks
    /// would own none: the plan should name the operator and refuse the job.
    pub const fn new(subtasks: u32) -> Result<Self, ParallelismRefused> {
        match subtasks {
            0 => Err(ParallelismRefused::Zero),
            1..=PARALLELISM_MAX => Ok(Self(subtasks)),
            _ => Err(ParallelismRefused::AboveKeyGroups { subtasks }),
        }
    }

    /// The number of subtasks.
    pub const fn subtasks(self) -> u32 {
        self.0
    }
}

/// Why a parallelism is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParallelismRefused {
    /// Nobody would do the work.
    #[error("a parallelism of 0: an operator needs at least one subtask")]
    Zero,
    /// Some subtasks would own no key.
    #[error(
        "a parallelism of {subtasks}: there are {KEY_GROUPS} key groups, use at most {PARALLELISM_MAX}"
    )]
    AboveKeyGroups {
        /// What was asked for.
        subtasks: u32,
    },
}

/// The key group of a key's bytes.
pub const fn key_group(key: &[u8]) -> u32 {
    key_group_of_hash(fnv1a64(key))
}

/// The key group of a key's hash.
pub const fn key_group_of_hash(hash: u64) -> u32 {
    (hash % KEY_GROUPS as u64) as u32
}

/// The subtask that owns a key group.
///
/// # Panics
///
/// Panics where there is no such group.
pub const fn subtask_of(group: u32, parallelism: Parallelism) -> u32 {
    assert!(group < KEY_GROUPS, "there is no such key group");
    group * parallelism.0 / KEY_GROUPS
}

/// The key groups that a subtask owns. The ranges of all subtasks cover every group once.
///
/// # Panics
///
/// Panics where there is no such subtask.
pub const fn key_group_range(subtask: u32, parallelism: Parallelism) -> Range<u32> {
    assert!(subtask < parallelism.0, "there is no such subtask");
    let start = (subtask * KEY_GROUPS).div_ceil(parallelism.0);
    let end = ((subtask + 1) * KEY_GROUPS).div_ceil(parallelism.0);
    start..end
}
