//! Buffers for the bodies of frames: aligned, filled as bytes arrive, reused.

use std::mem::MaybeUninit;

use bytes::Bytes;

/// Every body begins at a multiple of this, so that Arrow decodes it where it lies.
pub const BODY_ALIGNMENT: usize = 64;

/// A buffer for one body, of a length that is known before its bytes are there.
///
/// Memory is taken as it is filled: a peer that only claims a length costs address space.
#[derive(Debug)]
pub struct Body {
    bytes: Vec<u8>,
    capacity: usize,
}

impl Body {
    /// A buffer for a body of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            capacity: bytes,
        }
    }

    /// The length of the body.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What has been filled.
    pub fn filled(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes are missing.
    pub fn remaining(&self) -> usize {
        self.capacity - self.bytes.len()
    }

    /// Memory for the bytes that come next; at most what is missing, and not empty while
    /// something is.
    pub(crate) fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        let missing = self.remaining();
        let step = missing.min(self.bytes.len().max(256 << 10));
        self.bytes.reserve_exact(step);
        let spare = self.bytes.spare_capacity_mut();
        let length = spare.len().min(missing);
        &mut spare[..length]
    }

    /// Counts the first `bytes` bytes of [`Body::spare`] as filled.
    ///
    /// # Safety
    /// They have been written.
    pub(crate) unsafe fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.remaining(), "beyond the body");
        // SAFETY: the caller has written them, and they are within the capacity, since
        // `spare` offered them.
        unsafe { self.bytes.set_len(self.bytes.len() + bytes) };
    }

    /// Appends bytes.
    ///
    /// # Panics
    /// If they are more than are missing.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "beyond the body");
        self.bytes.extend_from_slice(bytes);
    }

    /// The complete body.
    ///
    /// # Panics
    /// If bytes are missing.
    pub fn freeze(self) -> Bytes {
        assert_eq!(self.remaining(), 0, "an incomplete body");
        Bytes::from(self.bytes)
    }
}
