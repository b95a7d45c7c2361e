//! Random operation sequences: the state machines agree with naive models after every step.
//!
//! `RINGWAY_SEED` replays one sequence; a failure prints the seed of its own.

mod align_model;
mod align_runs;
mod generator_model;
mod merge_model;
mod watermark_runs;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringway_tests::seed::{SEED_VARIABLE, seed};

const SEQUENCES: u64 = 20_000;

fn for_each_seed(check: impl Fn(u64)) {
    let first = seed();
    let count = match std::env::var_os(SEED_VARIABLE) {
        Some(_) => 1,
        None => SEQUENCES,
    };
    println!("seeds from {first}, {count} sequences");
    for seed in (0..count).map(|number| first.wrapping_add(number)) {
        let checked = catch_unwind(AssertUnwindSafe(|| check(seed)));
        assert!(checked.is_ok(), "replay with {SEED_VARIABLE}={seed}");
    }
}
