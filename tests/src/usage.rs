//! What this process uses of the machine, as its kernel has it.

use std::fs;

/// Bytes of memory that are resident now. All threads add to it, so a test that measures them
/// takes turns with those beside it, or stands in a binary of its own.
///
/// # Panics
/// If `/proc` is not there.
pub fn resident_bytes() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).expect("it has a second field");
    let pages: usize = pages.parse().expect("a number of pages");
    pages * rustix::param::page_size()
}

/// How many descriptors are open now, the one that counts them included.
///
/// # Panics
/// If `/proc` is not there.
pub fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("Linux has it").count()
}
