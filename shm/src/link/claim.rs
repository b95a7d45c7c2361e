//! A place for a message that is being written.

use core::ops::{Deref, DerefMut};

use crate::link::producer::Producer;
use crate::link::{KIND_MAX, stores};

/// A place for a message, from [`Producer::try_claim`]. Dropping it without
/// [`commit`](Claim::commit) leaves no trace.
#[derive(Debug)]
#[must_use = "a claim that is not committed is no message"]
pub struct Claim<'a> {
    producer: &'a mut Producer,
    gap: usize,
    offset: usize,
    len: usize,
    appended: usize,
    /// The model checker is shown the accesses when the message is complete.
    #[cfg(loom)]
    bytes: Vec<u8>,
}

impl<'a> Claim<'a> {
    #[inline]
    pub(crate) fn new(producer: &'a mut Producer, gap: usize, len: usize) -> Claim<'a> {
        Claim {
            offset: producer.offset_behind(gap),
            producer,
            gap,
            len,
            appended: 0,
            #[cfg(loom)]
            bytes: vec![0; len],
        }
    }

    /// Copies `bytes` behind what was appended before, with plain or streaming stores, whichever
    /// is faster. Don't read back what was appended: it may not be in any cache.
    ///
    /// # Panics
    ///
    /// If they don't fit.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        let streams = self.producer.streams(bytes.len());
        self.producer.has_streamed |= streams;
        let from = self.appended;
        self.appended += bytes.len();
        let to = self.appended;
        let place = &mut self[from..to];
        if streams {
            stores::copy_streaming(place, bytes);
        } else {
            place.copy_from_slice(bytes);
        }
    }

    /// Appends `len` zero bytes.
    ///
    /// # Panics
    ///
    /// If they don't fit.
    pub fn append_zeroes(&mut self, len: usize) {
        let from = self.appended;
        self.appended += len;
        let to = self.appended;
        self[from..to].fill(0);
    }

    /// How many bytes were appended.
    pub fn appended(&self) -> usize {
        self.appended
    }

    /// Makes a message of the first `len` bytes, to be published by the next
    /// [`flush`](Producer::flush).
    ///
    /// # Panics
    ///
    /// If that is more than was claimed, or `kind` is above [`KIND_MAX`].
    #[inline]
    pub fn commit(self, kind: u32, len: usize) {
        assert!(len <= self.len, "more than was claimed");
        assert!(kind <= KIND_MAX, "a kind above the highest");
        #[cfg(loom)]
        self.producer.side.write(self.offset, &self.bytes[..len]);
        self.producer.commit(self.gap, kind, len);
    }
}

#[cfg(not(loom))]
impl Deref for Claim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: as in `deref_mut`, and whoever writes there borrows `self` alone.
        unsafe { self.producer.side.bytes(self.offset, self.len) }
    }
}

#[cfg(not(loom))]
impl DerefMut for Claim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the producer found these bytes given back and not leased, and is borrowed by
        // this claim alone, which is borrowed for as long as they are.
        unsafe { self.producer.side.bytes_mut(self.offset, self.len) }
    }
}

#[cfg(loom)]
impl Deref for Claim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(loom)]
impl DerefMut for Claim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
