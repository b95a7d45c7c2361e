//! What goes out on a connection: frames, gathered into sends.

use std::collections::VecDeque;

use bytes::Bytes;
use ringway_netio::driver::{SEND_BYTES_MAX, SEND_SEGMENTS_MAX, TAILED_BYTES_MAX};

use super::links::Io;

/// Small frames, and small parts of frames, are put together in segments of about this size.
const SEGMENT_BYTES: usize = 64 << 10;

/// What was gathered and not taken by the kernel yet.
#[derive(Debug, Default)]
pub(super) struct Outflow {
    /// Frames, or parts of frames, that end no segment yet.
    out: Vec<u8>,
    /// How long the last such segment became: the next one is likely as long.
    last_bytes: usize,
    segments: VecDeque<Bytes>,
    /// Bytes in both.
    waiting_bytes: usize,
    in_flight: bool,
    /// Bytes that were ever gathered, and that the kernel took of them.
    gathered_total: u64,
    sent_total: u64,
}

impl Outflow {
    /// Whether the kernel has everything.
    pub(super) fn is_empty(&self) -> bool {
        !self.in_flight && self.waiting_bytes == 0
    }

    /// Whether it is time to gather more: no send is in flight, and one takes more than this.
    pub(super) fn wants_more(&self) -> bool {
        !self.in_flight
            && self.segments.len() + 1 < SEND_SEGMENTS_MAX
            && self.waiting_bytes < SEND_BYTES_MAX
    }

    /// Appends: first to the bytes that end no segment, then, behind them, to the segments.
    /// `append` returns how many bytes that were in all.
    pub(super) fn append(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>, &mut VecDeque<Bytes>) -> usize,
    ) {
        if self.out.capacity() == 0 {
            // Some more, for the frame that ends it.
            self.out.reserve(self.last_bytes + self.last_bytes / 8);
        }
        let bytes = append(&mut self.out, &mut self.segments);
        if self.out.len() >= SEGMENT_BYTES {
            self.end_segment();
        }
        self.waiting_bytes += bytes;
        self.gathered_total += bytes as u64;
    }

    /// How many bytes were ever gathered.
    pub(super) fn gathered_total(&self) -> u64 {
        self.gathered_total
    }

    /// How many bytes the kernel ever took.
    pub(super) fn sent_total(&self) -> u64 {
        self.sent_total
    }

    /// Hands one send to the driver, if there is something to send and none is in flight.
    /// Returns whether it did. `fill` appends what is to follow a small one: it costs less than
    /// what the receiver waits otherwise.
    pub(super) fn send(
        &mut self,
        io: &mut Io<'_>,
        fill: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> bool {
        if self.in_flight || self.waiting_bytes == 0 {
            return false;
        }
        if self.waiting_bytes <= TAILED_BYTES_MAX {
            let bytes = fill(&mut self.out);
            self.waiting_bytes += bytes;
            self.gathered_total += bytes as u64;
        }
        if !self.out.is_empty() {
            self.end_segment();
        }
        let sent = io.driver.send(io.connection, &mut self.segments);
        self.waiting_bytes -= sent;
        self.in_flight = sent > 0;
        self.in_flight
    }

    fn end_segment(&mut self) {
        let out = std::mem::take(&mut self.out);
        self.last_bytes = out.len().min(SEGMENT_BYTES);
        self.segments.push_back(Bytes::from(out));
    }

    /// The kernel has taken a send of this size.
    pub(super) fn handle_sent(&mut self, bytes: usize) {
        self.in_flight = false;
        self.sent_total += bytes as u64;
    }

    /// Nothing more can be sent.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.segments.clear();
        self.waiting_bytes = 0;
        self.in_flight = false;
    }
}
