//! Instructions of the pure parts, counted under valgrind: `scripts/bench-guard` runs this, and
//! compares the counts with those of `bench/instructions/counts.json`.
//!
//! Nothing here measures time. A count says how much work the processor is given; it is the same
//! in every run, so that it shows a change of a few hundredths, which no clock of a shared machine
//! does. It says nothing about what a cache or a wrongly foretold branch costs: for that there are
//! the other benches.

#![expect(missing_docs, reason = "the macros write items that have none")]

mod batches;
mod expressions;
mod frames;
mod gate;
mod keys;
mod ring;
mod rows;

use gungraun::Callgrind;
use gungraun::prelude::*;

use batches::{region_decode, region_encode, wire_decode, wire_encode};
use expressions::{filter, parse_and_bind};
use frames::{credit, deframe, frame_encode, session_step};
use gate::{align, gate_step, watermark_merge};
use keys::{key_hash, partition, window_assign};
use ring::push_64_and_pop_64;

library_benchmark_group!(name = shm, benchmarks = [push_64_and_pop_64]);
library_benchmark_group!(
    name = netio,
    benchmarks = [frame_encode, deframe, credit, session_step]
);
library_benchmark_group!(
    name = engine,
    benchmarks = [
        wire_encode,
        wire_decode,
        region_encode,
        region_decode,
        align,
        gate_step,
        watermark_merge,
        key_hash,
        partition,
        window_assign,
        filter,
        parse_and_bind
    ]
);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = [shm, netio, engine]
);
