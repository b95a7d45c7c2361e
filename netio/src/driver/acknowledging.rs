//! When the kernel acknowledges what was read.

use std::os::fd::AsFd;

/// The kernel is asked to acknowledge late each time so many reads have come.
const READS_PER_REQUEST: u32 = 16;

/// Counts the reads of one connection.
#[derive(Debug, Default)]
pub(super) struct Acknowledging {
    reads: u32,
}

impl Acknowledging {
    /// Something was read. Returns whether the kernel is to be [asked](acknowledge_late) again,
    /// since it comes off what it was asked for after each pause.
    pub(super) fn handle_read(&mut self) -> bool {
        self.reads = self.reads.wrapping_add(1);
        self.reads.is_multiple_of(READS_PER_REQUEST)
    }
}

/// Lets the kernel put acknowledgements off for some milliseconds. Otherwise it sends one within
/// each read of a lone frame, which takes some 2 us before the reader has the frame. Bulk is
/// acknowledged as it was.
pub(super) fn acknowledge_late(socket: &impl AsFd) {
    // A kernel that refuses is only slower.
    let _ = rustix::net::sockopt::set_tcp_quickack(socket, false);
}
