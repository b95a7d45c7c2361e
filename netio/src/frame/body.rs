//! A plain buffer for the body of a data frame.

use super::AHEAD_BYTES_MAX;

/// Collects a body as it arrives, with memory at most [`AHEAD_BYTES_MAX`] ahead of the bytes
/// that have come. For callers without buffers of their own; it promises no alignment.
#[derive(Debug)]
pub struct BodyBuffer {
    bytes: Vec<u8>,
    wanted: usize,
}

impl BodyBuffer {
    /// A buffer for a body of `wanted_bytes`. It holds no memory yet.
    pub fn new(wanted_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            wanted: wanted_bytes,
        }
    }

    /// Appends the part of the body that has arrived.
    ///
    /// # Panics
    /// If that is more than the body has.
    pub fn fill(&mut self, part: &[u8]) {
        assert!(part.len() <= self.missing(), "a part beyond the body");
        let free = self.bytes.capacity() - self.bytes.len();
        if free < part.len() {
            let ahead = self.missing().min(AHEAD_BYTES_MAX);
            self.bytes.reserve_exact(part.len().max(ahead));
        }
        self.bytes.extend_from_slice(part);
    }

    /// How many bytes have not come yet.
    pub fn missing(&self) -> usize {
        self.wanted - self.bytes.len()
    }

    /// How much memory it holds.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The body, as far as it has come.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_near_what_has_arrived() {
        let mut buffer = BodyBuffer::new(64 << 20);
        assert_eq!(buffer.capacity_bytes(), 0);
        for part in [1, 100, 70_000, 300_000, 5] {
            buffer.fill(&vec![7; part]);
            let arrived = (64 << 20) - buffer.missing();
            assert!(buffer.capacity_bytes() <= arrived + AHEAD_BYTES_MAX);
        }
        assert_eq!(buffer.into_bytes().len(), 370_106);
    }
}
