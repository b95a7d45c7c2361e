//! The one send that a connection has in flight.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

use super::{SEND_BYTES_MAX, SEND_SEGMENTS_MAX};

/// Segments that are being sent, and what of them has gone already.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// What is left, in order. None of them is empty.
    segments: VecDeque<Bytes>,
    /// All that the send began with.
    bytes: usize,
}

impl Outgoing {
    /// Takes what one send gathers from the front of `queue`, and returns how many bytes.
    pub(super) fn gather(&mut self, queue: &mut VecDeque<Bytes>) -> usize {
        debug_assert!(self.segments.is_empty(), "one send at a time");
        self.bytes = 0;
        while let Some(next) = queue.front() {
            let first = self.segments.is_empty();
            let fits = self.bytes + next.len() <= SEND_BYTES_MAX;
            if self.segments.len() == SEND_SEGMENTS_MAX || !(first || fits) {
                break;
            }
            if let Some(segment) = queue.pop_front().filter(|segment| !segment.is_empty()) {
                self.bytes += segment.len();
                self.segments.push_back(segment);
            }
        }
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How many bytes the send began with.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes are left.
    pub(super) fn remaining(&self) -> usize {
        self.segments.iter().map(Bytes::len).sum()
    }

    /// What is left, if it is in one piece.
    pub(super) fn sole(&self) -> Option<&[u8]> {
        match self.segments.len() {
            1 => self.segments.front().map(Bytes::as_ref),
            _ => None,
        }
    }

    /// What is left, for a vectored write; as many as there are.
    pub(super) fn slices(&self) -> ([IoSlice<'_>; SEND_SEGMENTS_MAX], usize) {
        let mut slices = [IoSlice::new(&[]); SEND_SEGMENTS_MAX];
        for (slice, segment) in slices.iter_mut().zip(&self.segments) {
            *slice = IoSlice::new(segment);
        }
        (slices, self.segments.len())
    }

    /// Lets go of the first `count` bytes.
    ///
    /// # Panics
    /// If fewer are left.
    pub(super) fn advance(&mut self, mut count: usize) {
        while count > 0 {
            assert!(!self.segments.is_empty(), "more was sent than was asked");
            let first = &mut self.segments[0];
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.segments.pop_front();
        }
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(lengths: &[usize]) -> VecDeque<Bytes> {
        lengths
            .iter()
            .map(|len| Bytes::from(vec![7; *len]))
            .collect()
    }

    fn gathered(lengths: &[usize]) -> (usize, usize) {
        let mut queue = queue(lengths);
        let bytes = Outgoing::default().gather(&mut queue);
        (bytes, queue.len())
    }

    #[test]
    fn a_send_gathers_up_to_its_segments_and_its_bytes() {
        assert_eq!(gathered(&[]), (0, 0));
        assert_eq!(
            gathered(&[1; 100]),
            (SEND_SEGMENTS_MAX, 100 - SEND_SEGMENTS_MAX)
        );
        assert_eq!(gathered(&[SEND_BYTES_MAX - 1, 1, 1]), (SEND_BYTES_MAX, 1));
        assert_eq!(gathered(&[SEND_BYTES_MAX - 1, 2]), (SEND_BYTES_MAX - 1, 1));
        assert_eq!(gathered(&[2 * SEND_BYTES_MAX, 1]), (2 * SEND_BYTES_MAX, 1));
        assert_eq!(gathered(&[0, 5, 0]), (5, 0));
    }

    #[test]
    fn a_short_send_leaves_the_rest_in_order() {
        let mut outgoing = Outgoing::default();
        let mut queue = VecDeque::from([Bytes::from_static(b"abc"), Bytes::from_static(b"de")]);
        assert_eq!(outgoing.gather(&mut queue), 5);
        outgoing.advance(1);
        assert_eq!((outgoing.remaining(), outgoing.bytes()), (4, 5));
        let (slices, count) = outgoing.slices();
        assert_eq!(
            (&*slices[0], &*slices[1], count),
            (&b"bc"[..], &b"de"[..], 2)
        );
        outgoing.advance(3);
        assert_eq!(&*outgoing.slices().0[0], b"e");
        outgoing.advance(1);
        assert!(outgoing.is_empty());
    }
}
