//! Leaving the end of what comes together for later.
//!
//! A kernel acknowledges the second small segment within the call that empties the socket, which
//! takes some 2 us before the reader has the frame. A sender that knows its receiver therefore
//! puts something that means nothing behind what is small, and the receiver does not ask for that
//! with the frame but after it: then the answer is on its way when the kernel acknowledges.

/// What comes together is left in part only where it is at most so many bytes.
const SMALL_BYTES_MAX: usize = 4 << 10;

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
}

impl Burst {
    /// The last bytes of each burst mean nothing.
    pub(super) fn expect_tail(&mut self, bytes: usize) {
        self.tail_bytes = bytes;
    }

    /// How many bytes to ask for, where there is room for so many.
    #[inline]
    pub(super) fn wanted(&self, room: usize) -> usize {
        let leaves = self.tail_bytes > 0
            && self.bytes == 0
            && self.last_bytes > self.tail_bytes
            && self.last_bytes <= SMALL_BYTES_MAX;
        match leaves {
            true => room.min(self.last_bytes - self.tail_bytes),
            false => room,
        }
    }

    /// So many bytes came of those that were asked for. Fewer are the end of it.
    #[inline]
    pub(super) fn handle_read(&mut self, bytes: usize, asked: usize) {
        self.bytes += bytes;
        if bytes < asked {
            self.handle_nothing();
        }
    }

    /// Whether the next one is so likely as long as the last ones that an operation of its own is
    /// worth it.
    pub(super) fn is_steady(&self) -> bool {
        self.alike >= ALIKE_MIN && self.wanted(usize::MAX) < usize::MAX
    }

    /// Whether the end of this one was left for the next turn.
    #[inline]
    pub(super) fn has_tail_left(&self) -> bool {
        self.bytes > 0 && self.bytes + self.tail_bytes == self.last_bytes
    }

    /// The tail that was left comes in whatever way.
    pub(super) fn forget_tail(&mut self) {
        self.bytes = 0;
    }

    /// Nothing is there.
    #[inline]
    pub(super) fn handle_nothing(&mut self) {
        if self.bytes > 0 {
            let bytes = std::mem::take(&mut self.bytes);
            self.alike = match bytes == self.last_bytes {
                true => self.alike.saturating_add(1),
                false => 0,
            };
            self.last_bytes = bytes;
        }
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
        assert_eq!(read(&mut burst, 5000), [5000]);
        assert_eq!(read(&mut burst, 5000), [5000]);
        assert_eq!(read(&mut burst, 64), [64]);
        assert_eq!(read(&mut burst, 64), [64]);
    }
}
