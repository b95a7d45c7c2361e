#![no_main]

mod begin;

use ringway_tests::fuzzed;

libfuzzer_sys::fuzz_target!(
    init: begin::begin("region"),
    |bytes: &[u8]| fuzzed::region(bytes)
);
