//! Chunks that are read into with calls that do not block.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use crate::driver::Chunk;

/// The length of a chunk, in bytes.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// Chunks that may be with the caller at a time. Beyond them nothing is read.
pub(super) const CHUNKS_MAX: usize = 256;

/// Chunks that are kept for reuse. The one that came back last goes out first: it is in the
/// cache of the core.
const CHUNKS_KEPT: usize = 32;

/// Buffers that are lent to the caller and come back.
#[derive(Clone, Default)]
pub(super) struct ChunkPool {
    shelf: Rc<RefCell<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    kept: Vec<Box<[u8]>>,
    lent: usize,
}

/// A buffer of the pool, while it is filled and while the caller has it.
pub(super) struct Lent {
    buffer: Box<[u8]>,
    filled: usize,
    shelf: Rc<RefCell<Shelf>>,
}

impl ChunkPool {
    /// A buffer, unless all are with the caller.
    pub(super) fn lend(&self) -> Option<Lent> {
        let mut shelf = self.shelf.borrow_mut();
        if shelf.lent == CHUNKS_MAX {
            return None;
        }
        shelf.lent += 1;
        let kept = shelf.kept.pop();
        Some(Lent {
            buffer: kept.unwrap_or_else(|| vec![0; CHUNK_BYTES].into_boxed_slice()),
            filled: 0,
            shelf: Rc::clone(&self.shelf),
        })
    }

    /// Whether a buffer can be had.
    pub(super) fn has_room(&self) -> bool {
        self.shelf.borrow().lent < CHUNKS_MAX
    }
}

impl Lent {
    /// Where to read to.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The first `bytes` bytes, for the caller.
    pub(super) fn into_chunk(mut self, bytes: usize) -> Chunk {
        self.filled = bytes;
        Chunk::from(self)
    }

    /// Whether the callers have at most half of what they may have.
    pub(super) fn is_spare(&self) -> bool {
        self.shelf.borrow().lent <= CHUNKS_MAX / 2
    }
}

impl Deref for Lent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut shelf = self.shelf.borrow_mut();
        shelf.lent -= 1;
        if shelf.kept.len() < CHUNKS_KEPT {
            shelf.kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_may_keep_chunks_while_half_of_them_are_here() {
        let pool = ChunkPool::default();
        let chunk = |lent: Lent| lent.into_chunk(1);
        let mut kept: Vec<Chunk> = (0..CHUNKS_MAX / 2)
            .map(|_| chunk(pool.lend().unwrap()))
            .collect();
        assert!(kept.iter().all(Chunk::is_spare));
        kept.push(chunk(pool.lend().unwrap()));
        assert!(!kept.iter().any(Chunk::is_spare));
        kept.pop();
        assert!(kept.iter().all(Chunk::is_spare));
    }

    #[test]
    fn a_chunk_goes_back_when_it_is_dropped_and_outlives_the_pool() {
        let pool = ChunkPool::default();
        let mut out: Vec<Lent> = std::iter::from_fn(|| pool.lend()).collect();
        assert_eq!((out.len(), pool.has_room()), (CHUNKS_MAX, false));
        out[0].buffer()[..3].copy_from_slice(b"abc");
        let chunk = out.swap_remove(0).into_chunk(3);
        drop(out);
        assert!(pool.has_room());
        drop(pool);
        assert_eq!(&*chunk, b"abc");
    }
}
