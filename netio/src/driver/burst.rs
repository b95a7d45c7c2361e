//! Leaving the end of what comes together for later.
//!
//! A kernel acknowledges the second small segment within the call that empties the socket, which
//! takes some 2 us before the reader has the frame. A sender that knows its receiver therefore
//! puts something that means nothing behind what is small, and the receiver does not ask for that
//! with the frame but after it: then the answer is on its way when the kernel acknowledges.
//!
//! How long the next burst is nobody knows: it is taken to be as long as the last one. Where that
//! is wrong, its bytes come in other parts, and no later than the next turn.

use super::TAILED_BYTES_MAX;

/// So many of the same length in a row, and the next one is expected to have it.
const ALIKE_MIN: u32 = 8;

/// What one connection brings together: without a pause in which nothing is there.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// So many bytes at the end of each mean nothing.
    tail_bytes: usize,
    /// What was read of this one.
    bytes: usize,
    /// The length of the one before: this one is likely as long.
    last_bytes: usize,
    /// So many in a row were as long.
    alike: u32,
    /// All was read of this one but what is likely its tail.
    leaves_tail: bool,
}

impl Burst {
    /// The last bytes of each burst mean nothing.
    pub(super) fn expect_tail(&mut self, bytes: usize) {
        self.tail_bytes = bytes;
    }

    /// How many bytes to ask for, where there is room for so many.
    #[inline]
    pub(super) fn wanted(&self, room: usize) -> usize {
        self.front_bytes().map_or(room, |bytes| bytes.min(room))
    }

    /// So many bytes came of those that were asked for. Fewer are the end of it.
    #[inline]
    pub(super) fn handle_read(&mut self, bytes: usize, asked: usize) {
        self.leaves_tail = bytes == asked && self.front_bytes() == Some(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes < asked {
            self.handle_nothing();
        }
    }

    /// Nothing is there.
    #[inline]
    pub(super) fn handle_nothing(&mut self) {
        self.leaves_tail = false;
        if self.bytes > 0 {
            let bytes = std::mem::take(&mut self.bytes);
            self.alike = match bytes == self.last_bytes {
                true => self.alike.saturating_add(1),
                false => 0,
            };
            self.last_bytes = bytes;
        }
    }

    /// Whether what is there now is best left for the next turn.
    #[inline]
    pub(super) fn leaves_tail(&self) -> bool {
        self.leaves_tail
    }

    /// The tail that was left comes in whatever way, as a burst of its own.
    pub(super) fn forget_tail(&mut self) {
        self.leaves_tail = false;
        self.bytes = 0;
    }

    /// Whether the next one is so likely as long as the last ones that an operation of its own is
    /// worth it.
    pub(super) fn is_steady(&self) -> bool {
        self.alike >= ALIKE_MIN && self.front_bytes().is_some()
    }

    /// What to ask for at the beginning of a burst whose tail is to be left. Only what is small
    /// has one.
    #[inline]
    fn front_bytes(&self) -> Option<usize> {
        let bytes = self.last_bytes.checked_sub(self.tail_bytes)?;
        let is_tailed = self.tail_bytes > 0 && (1..=TAILED_BYTES_MAX).contains(&bytes);
        (is_tailed && self.bytes == 0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 64 << 10;

    /// Reads a burst of so many bytes, and says in which parts.
    fn read(burst: &mut Burst, mut bytes: usize) -> Vec<usize> {
        let mut parts = Vec::new();
        while bytes > 0 {
            let asked = burst.wanted(ROOM);
            let part = asked.min(bytes);
            burst.handle_read(part, asked);
            parts.push(part);
            bytes -= part;
        }
        burst.handle_nothing();
        parts
    }

    #[test]
    fn the_tail_of_a_burst_like_the_last_one_is_read_by_itself() {
        let mut burst = Burst::default();
        burst.expect_tail(64);
        assert_eq!(read(&mut burst, 328), [328]);
        assert_eq!(read(&mut burst, 328), [264, 64]);
        assert_eq!(read(&mut burst, 328), [264, 64]);
        // Another length is read whole, or to its end at once.
        assert_eq!(read(&mut burst, 128), [128]);
        assert_eq!(read(&mut burst, 328), [64, 264]);
        assert_eq!(read(&mut burst, 328), [264, 64]);
    }

    #[test]
    fn large_bursts_and_those_without_a_tail_are_read_whole() {
        let mut burst = Burst::default();
        assert_eq!(read(&mut burst, 328), [328]);
        assert_eq!(read(&mut burst, 328), [328]);
        burst.expect_tail(64);
        let large = TAILED_BYTES_MAX + 65;
        read(&mut burst, large);
        for bytes in [large, large, 64, 64, 10, 10] {
            assert_eq!(read(&mut burst, bytes), [bytes]);
        }
        assert_eq!(read(&mut burst, large - 1), [large - 1]);
        assert_eq!(read(&mut burst, large - 1), [TAILED_BYTES_MAX, 64]);
    }

    #[test]
    fn a_tail_is_left_only_where_it_was_not_asked_for() {
        let mut burst = Burst::default();
        // Nothing is left of what nobody expects a tail of, whatever its length.
        for _ in 0..2 {
            burst.handle_read(ROOM, ROOM);
            assert!(!burst.leaves_tail());
            burst.handle_nothing();
        }
        read(&mut burst, 328);
        // Expected in the middle of a burst: the next one is the first.
        burst.handle_read(200, 200);
        burst.expect_tail(64);
        burst.handle_read(64, 64);
        assert!(!burst.leaves_tail());
        burst.handle_read(64, ROOM);
        assert!(!burst.leaves_tail());

        burst.handle_read(264, 264);
        assert!(burst.leaves_tail());
        assert_eq!(burst.wanted(ROOM), ROOM, "the tail and what follows it");
        burst.handle_nothing();
        assert!(!burst.leaves_tail(), "there was none");
    }

    #[test]
    fn bursts_are_steady_after_some_of_one_length_and_until_another_or_a_tail_that_is_forgotten() {
        let steady = |tail: usize, bursts: &[usize]| {
            let mut burst = Burst::default();
            burst.expect_tail(tail);
            for &bytes in bursts {
                read(&mut burst, bytes);
            }
            burst
        };
        let alike = [328; ALIKE_MIN as usize + 1];
        assert!(!steady(64, &alike[1..]).is_steady());
        assert!(steady(64, &alike).is_steady());
        assert!(!steady(0, &alike).is_steady());
        assert!(!steady(64, &[&alike[..], &[80]].concat()).is_steady());
        let large = [TAILED_BYTES_MAX + 65; ALIKE_MIN as usize + 1];
        assert!(!steady(64, &large).is_steady());

        let mut burst = steady(64, &alike);
        burst.handle_read(264, 264);
        assert!(burst.leaves_tail());
        burst.forget_tail();
        assert!(!burst.leaves_tail());
        burst.handle_read(64, 264);
        assert!(!burst.is_steady());
    }

    #[test]
    fn a_room_that_is_smaller_than_what_is_expected_leaves_no_tail() {
        let mut burst = Burst::default();
        burst.expect_tail(64);
        read(&mut burst, 328);
        assert_eq!(burst.wanted(100), 100);
        burst.handle_read(100, 100);
        assert!(!burst.leaves_tail());
        assert_eq!(burst.wanted(ROOM), ROOM);
    }
}
