//! Options of TCP that our libraries have no name for.

use std::ffi::{c_int, c_void};
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

const IPPROTO_TCP: c_int = 6;
const TCP_INFO: c_int = 11;
const TCP_RTO_MAX_MS: c_int = 44;

/// Bytes of `struct tcp_info` that are looked at; the kernel writes no more than it is asked
/// for, and all kernels have these.
const INFO_BYTES: usize = 60;
const PROBES_AT: usize = 3;
const LAST_ACK_AT: usize = 56;
const _: () = assert!(LAST_ACK_AT + size_of::<u32>() == INFO_BYTES);

// The library that the standard library stands on has both.
unsafe extern "C" {
    fn getsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut u32,
    ) -> c_int;

    fn setsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *const c_void,
        length: u32,
    ) -> c_int;
}

/// What the kernel last heard of the peer's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heard {
    /// Questions in a row that have no answer yet, while the peer has no room.
    pub(super) probes: u8,
    /// The time since the last acknowledgement of anything, old or new.
    pub(super) before: Duration,
}

impl Heard {
    /// # Errors
    /// The socket is none of TCP.
    pub(super) fn of(stream: &TcpStream) -> io::Result<Self> {
        let mut info = [0u8; INFO_BYTES];
        let mut length = INFO_BYTES as u32;
        // SAFETY: the kernel writes `length` bytes at most, which is how many there are, and
        // how many it wrote to `length`; both outlive the call.
        let failed = unsafe {
            getsockopt(
                stream.as_raw_fd(),
                IPPROTO_TCP,
                TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        let [.., a, b, c, d] = info;
        Ok(Self {
            probes: info[PROBES_AT],
            before: Duration::from_millis(u32::from_ne_bytes([a, b, c, d]).into()),
        })
    }
}

/// Sets how long the kernel waits at most before it repeats what has no answer, from Linux 6.15
/// on; before that it is two minutes.
///
/// # Errors
/// The kernel is older, or the socket is none of TCP.
pub(super) fn set_repeat_max(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let time_ms = c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX);
    // SAFETY: the kernel reads an int, which outlives the call.
    let failed = unsafe {
        setsockopt(
            stream.as_raw_fd(),
            IPPROTO_TCP,
            TCP_RTO_MAX_MS,
            (&raw const time_ms).cast(),
            size_of::<c_int>() as u32,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
