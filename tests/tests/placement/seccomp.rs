//! A filter on system calls, as a container runtime sets one.

use rustix::io::Errno;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The system calls of io_uring, which have these numbers on every architecture.
const IO_URING_CALLS: std::ops::RangeInclusive<i64> = 425..=427;

/// From now on the system calls of io_uring fail with `errno` on this thread and on those that
/// it starts.
pub(crate) fn deny_io_uring(errno: Errno) {
    deny(IO_URING_CALLS, errno);
}

/// The same for some system calls.
pub(crate) fn deny(calls: std::ops::RangeInclusive<i64>, errno: Errno) {
    let error = u32::try_from(errno.raw_os_error()).unwrap();
    let filter = SeccompFilter::new(
        calls.map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(error),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}
