#![no_main]

// What stands beside the tests of netio and is used by them too.
#[allow(dead_code)]
#[path = "../../../netio/tests/wire/ends.rs"]
mod ends;
#[allow(dead_code)]
#[path = "../../../netio/tests/wire/feed.rs"]
mod feed;
#[allow(dead_code, clippy::disallowed_methods)]
#[path = "../../../netio/tests/wire/seed.rs"]
mod seed;

// The first byte decides how the others are cut.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((&how, bytes)) = bytes.split_first() {
        feed::feed_sender(bytes, &mut seed::Seeded::from_seed(u64::from(how)));
    }
});
