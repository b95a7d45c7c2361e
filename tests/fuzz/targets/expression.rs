#![no_main]

use ringway_tests::fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::expression(bytes));
