#![no_main]

mod begin;

use ringway_tests::fuzzed;

libfuzzer_sys::fuzz_target!(
    init: begin::begin("frame_bodies"),
    |bytes: &[u8]| fuzzed::frame_bodies(bytes)
);
