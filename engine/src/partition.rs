//! Key groups.
use std::ops::Range;

use crate::limits::KEY_GROUPS;

/// The key groups that subtask `subtask` of `parallelism` owns.
pub fn key_group_range(subtask: u32, parallelism: u32) -> Range<u32> {
    (subtask * KEY_GROUPS).div_ceil(parallelism)..((subtask + 1) * KEY_GROUPS).div_ceil(parallelism)
}
