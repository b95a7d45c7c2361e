//! Random operation sequences: the state machines agree with naive models after every step.
//!
//! `RINGWAY_SEED` replays one sequence; a failure prints the seed of its own.

mod align_model;
mod align_runs;
mod generator_model;
mod merge_model;
mod watermark_runs;

use std::panic::{AssertUnwindSafe, catch_unwind};

const SEQUENCES: u64 = 20_000;

fn for_each_seed(check: impl Fn(u64)) {
    let (first, count) = match std::env::var("RINGWAY_SEED") {
        Ok(seed) => (seed.parse().expect("RINGWAY_SEED is a number"), 1),
        Err(_) => (0x51_7cc1_b727_2202, SEQUENCES),
    };
    println!("seeds from {first}, {count} sequences");
    for seed in first..first + count {
        let checked = catch_unwind(AssertUnwindSafe(|| check(seed)));
        assert!(checked.is_ok(), "replay with RINGWAY_SEED={seed}");
    }
}

/// A small generator, so that a seed means the same sequence for ever.
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
