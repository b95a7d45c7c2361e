//! Memory that is not there when a segment is made.

use ringway_shm::Bell;
use ringway_shm::link::{LinkConfig, Outgoing};
use ringway_shm::segment::OpenError;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::io::Errno;

use crate::seccomp::deny;

/// `fallocate`, which reserves memory.
const FALLOCATE: i64 = if cfg!(target_arch = "x86_64") {
    285
} else {
    47
};

/// Mapping fills the pages too, but does not say if there are none left: the first access ends
/// the process then. What such a host says is played by a filter of system calls.
#[test]
fn a_segment_whose_memory_can_not_be_reserved_is_an_error_and_not_a_signal_later() {
    let (bell, config) = (Bell::descriptor().unwrap(), LinkConfig::default());
    // The bell has its page from now on.
    drop(Outgoing::new(&config, &bell).unwrap());
    let denied = std::thread::spawn(move || {
        deny(FALLOCATE..=FALLOCATE, Errno::NOSPC);
        let memory = memfd_create("probe", MemfdFlags::CLOEXEC).unwrap();
        let probe = fallocate(&memory, FallocateFlags::empty(), 0, 4096);
        assert_eq!(probe, Err(Errno::NOSPC), "the filter denies what it is to");
        Outgoing::new(&config, &bell).map(drop)
    });
    let refused = denied.join().unwrap().unwrap_err();
    let OpenError::NoMemory { bytes, source } = refused else {
        panic!("{refused}");
    };
    assert_eq!(bytes, config.segment_bytes() as u64);
    assert_eq!(source.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
}
