//! Memory of bodies, kept for the next.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, Weak};

use rustix::param::page_size;

use super::memory::Memory;
use super::{AHEAD_BYTES_MAX, BEYOND_BYTES_MAX, BEYOND_FROM, Body};

/// Below this length the heap is as fast as a pool, in bytes.
const POOLED_BYTES_MIN: usize = 4 << 10;

/// What a pool keeps by default, in bytes: a few of the largest batches, or hundreds of usual
/// ones.
const KEPT_BYTES_DEFAULT: usize = 32 << 20;

/// Keeps what bodies leave behind, for one thread. Clones are the same pool.
///
/// Bodies come back on whatever thread their last reference is dropped. The lock of the pool is
/// never waited for: who finds it taken, does without, and returns memory to the system or
/// takes it from there.
#[derive(Clone)]
pub struct BodyPool {
    shared: Arc<Mutex<Kept>>,
}

/// Memory of a body, on its way to the pool that it came from.
pub(super) struct Lent {
    pub(super) memory: Memory,
    pub(super) filled: usize,
    home: Home,
}

/// The pool that memory goes back to, if there is one and as long as it is there.
pub(super) struct Home {
    pool: Option<Weak<Mutex<Kept>>>,
    /// How much of the memory earlier bodies have touched, in bytes.
    touched: usize,
}

struct Kept {
    /// By length, the newest last: its bytes are most likely still in a cache.
    classes: BTreeMap<usize, Class>,
    bytes: usize,
    bytes_max: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Default)]
struct Class {
    free: Vec<Free>,
    used: u64,
}

struct Free {
    memory: Memory,
    touched: usize,
}

impl BodyPool {
    /// A pool that keeps at most `bytes_max` bytes of memory for reuse. What bodies in use
    /// hold does not count.
    pub fn new(bytes_max: usize) -> Self {
        let kept = Kept {
            classes: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            now: 0,
        };
        Self {
            shared: Arc::new(Mutex::new(kept)),
        }
    }

    /// A buffer for a body of `bytes` bytes, like [`Body::new`], in memory of an earlier one
    /// where there is some.
    pub fn body(&self, bytes: usize) -> Body {
        if bytes < POOLED_BYTES_MIN {
            return Body::new(bytes);
        }
        let beyond = if bytes < BEYOND_FROM {
            0
        } else {
            BEYOND_BYTES_MAX
        };
        let class = class_bytes(bytes + beyond);
        let free = match self.shared.try_lock() {
            Ok(mut kept) => kept.take(class),
            Err(_) => None,
        };
        let free = free.unwrap_or_else(|| Free {
            memory: Memory::ahead(class),
            touched: 0,
        });
        let home = Home {
            pool: Some(Arc::downgrade(&self.shared)),
            touched: free.touched,
        };
        Body::of(free.memory, bytes, home)
    }

    /// Bytes of memory that are kept for reuse.
    pub fn kept_bytes(&self) -> usize {
        let kept = self.shared.lock();
        kept.map_or(0, |kept| kept.bytes)
    }
}

impl Home {
    /// None: to the system.
    pub(super) fn none() -> Self {
        Self {
            pool: None,
            touched: 0,
        }
    }
}

impl Lent {
    pub(super) fn new(memory: Memory, home: Home) -> Self {
        Self {
            memory,
            filled: 0,
            home,
        }
    }

    /// The memory was used up to there.
    pub(super) fn touch(&mut self, end: usize) {
        self.home.touched = self.home.touched.max(end);
    }
}

impl Kept {
    fn take(&mut self, class: usize) -> Option<Free> {
        self.now += 1;
        let of_length = self.classes.get_mut(&class)?;
        of_length.used = self.now;
        let free = of_length.free.pop()?;
        self.bytes -= free.touched;
        Some(free)
    }

    /// Keeps memory, and returns what has to go for it: that of the length which was not asked
    /// for the longest.
    #[must_use]
    fn put(&mut self, free: Free) -> Vec<Free> {
        if free.touched > self.bytes_max {
            return vec![free];
        }
        self.now += 1;
        self.bytes += free.touched;
        let class = self.classes.entry(free.memory.len()).or_default();
        class.used = self.now;
        class.free.push(free);
        let mut gone = Vec::new();
        while self.bytes > self.bytes_max {
            let Some(oldest) = self.oldest() else { break };
            self.bytes -= oldest.touched;
            gone.push(oldest);
        }
        gone
    }

    fn oldest(&mut self) -> Option<Free> {
        let by_use = |(_, class): &(&usize, &mut Class)| class.used;
        let (&length, class) = self.classes.iter_mut().min_by_key(by_use)?;
        // From the front: the others are warmer.
        let free = (!class.free.is_empty()).then(|| class.free.remove(0));
        if class.free.is_empty() {
            self.classes.remove(&length);
        }
        free.or_else(|| self.oldest())
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.memory.as_slice()[..self.filled]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(pool) = self.home.pool.take().and_then(|pool| pool.upgrade()) else {
            return;
        };
        let memory = mem::replace(&mut self.memory, Memory::heap(0));
        let touched = if memory.is_lazy() {
            // Memory comes in pages, and a mapping that was never touched is something too.
            let bytes = self.home.touched.max(self.filled).max(1);
            bytes.next_multiple_of(page_size())
        } else {
            memory.len()
        };
        // A body that was to lie in a mapping but could not is of a length nobody asks for.
        if memory.len() > AHEAD_BYTES_MAX && !memory.is_lazy() {
            return;
        }
        let gone = match pool.try_lock() {
            Ok(mut kept) => kept.put(Free { memory, touched }),
            Err(_) => return,
        };
        // Outside of the lock: giving memory back to the system takes its time.
        drop(gone);
    }
}

impl Default for BodyPool {
    fn default() -> Self {
        Self::new(KEPT_BYTES_DEFAULT)
    }
}

impl fmt::Debug for BodyPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyPool")
            .field("kept_bytes", &self.kept_bytes())
            .finish()
    }
}

/// The length of the memory for a body: one of eight between a power of two and the next, so
/// that bodies of similar lengths share and at most an eighth is idle.
fn class_bytes(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 16).max(512);
    bytes.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &BodyPool, bytes: usize) -> Body {
        let mut body = pool.body(bytes);
        while body.remaining() > 0 {
            let part = body.remaining().min(1 << 20);
            body.extend_from_slice(&vec![9; part]);
        }
        body
    }

    #[test]
    fn memory_of_a_dropped_body_serves_the_next_of_a_similar_length() {
        let pool = BodyPool::new(1 << 20);
        for bytes in [100_000, 400_000] {
            let first = filled(&pool, bytes).freeze();
            let address = first.as_ptr();
            let part = first.slice(10..20);
            drop(first);
            assert_ne!(pool.body(bytes).spare().as_ptr(), address, "still in use");
            drop(part);
            assert_eq!(pool.body(bytes - 1000).spare().as_ptr(), address);
        }
    }

    #[test]
    fn an_unfinished_body_goes_back_too() {
        let pool = BodyPool::new(1 << 20);
        let mut body = pool.body(50_000);
        body.extend_from_slice(b"some");
        let address = body.filled().as_ptr();
        drop(body);
        let mut next = pool.body(50_000);
        assert_eq!((next.filled(), next.remaining()), (&b""[..], 50_000));
        assert_eq!(next.spare().as_ptr(), address);
    }

    #[test]
    fn a_body_dropped_on_another_thread_comes_back() {
        let pool = BodyPool::new(1 << 20);
        let bytes = filled(&pool, 100_000).freeze();
        let address = bytes.as_ptr().addr();
        std::thread::spawn(move || drop(bytes)).join().unwrap();
        assert!(pool.kept_bytes() >= 100_000);
        assert_eq!(pool.body(100_000).spare().as_ptr().addr(), address);
    }

    #[test]
    fn a_pool_keeps_no_more_than_its_bound_and_drops_what_is_asked_for_least() {
        let pool = BodyPool::new(1 << 20);
        let old: Vec<Body> = (0..20).map(|_| filled(&pool, 64 << 10)).collect();
        assert_eq!(pool.kept_bytes(), 0, "what is in use is not kept");
        drop(old);
        let is_well_filled = |pool: &BodyPool| {
            let kept = pool.kept_bytes();
            kept > 900 << 10 && kept <= 1 << 20
        };
        assert!(is_well_filled(&pool));
        drop(filled(&pool, 512 << 10));
        assert!(is_well_filled(&pool));
        let mut large = pool.body(512 << 10);
        assert_eq!(large.spare()[0], 9, "the newer one was kept");
        drop(filled(&pool, 2 << 20));
        assert!(
            pool.kept_bytes() <= 1 << 20,
            "more than the bound is not kept"
        );
    }

    #[test]
    fn of_a_large_mapping_only_what_was_touched_counts() {
        let pool = BodyPool::new(1 << 20);
        let mut body = pool.body(100 << 20);
        body.extend_from_slice(&[1; 1000]);
        drop(body);
        assert_eq!(pool.kept_bytes(), page_size());
        drop(pool.body(100 << 20));
        let kept = pool.kept_bytes();
        assert_eq!(kept, page_size(), "touched earlier counts as well");
    }

    #[test]
    fn many_bodies_of_which_little_came_hold_no_more_pages_than_the_bound() {
        const BOUND_BYTES: usize = 1 << 20;
        for came in [0, 1, 10] {
            let pool = BodyPool::new(BOUND_BYTES);
            let bodies: Vec<Body> = (0..1000)
                .map(|_| {
                    let mut body = pool.body(300_000);
                    body.extend_from_slice(&[1; 10][..came]);
                    body
                })
                .collect();
            drop(bodies);
            let kept = pool.shared.lock().unwrap();
            let mappings = kept.classes.values().map(|class| class.free.len());
            // Each of them has a page, but for those that were never touched.
            assert_eq!(mappings.sum::<usize>(), BOUND_BYTES / page_size());
            assert_eq!(kept.bytes, BOUND_BYTES, "{came} bytes came");
        }
    }

    #[test]
    fn bodies_outlive_their_pool() {
        let pool = BodyPool::default();
        let body = filled(&pool, 300_000);
        let bytes = filled(&pool, 5_000).freeze();
        drop(pool);
        assert_eq!(body.freeze().len(), 300_000);
        assert_eq!(bytes.len(), 5_000);
    }

    #[test]
    fn many_bytes_through_a_pool_take_the_memory_of_a_few() {
        let pool = BodyPool::new(8 << 20);
        let mut addresses = std::collections::HashSet::new();
        for _ in 0..300 {
            let bytes = filled(&pool, 1 << 20).freeze();
            addresses.insert(bytes.as_ptr().addr());
        }
        assert_eq!(addresses.len(), 1);
    }

    #[test]
    fn memory_is_at_most_an_eighth_longer_than_the_body() {
        for bytes in [
            4096,
            4097,
            9_000,
            65_536,
            65_537,
            100_000,
            1 << 20,
            (1 << 20) + 1,
        ] {
            let class = class_bytes(bytes);
            assert!(class >= bytes && class <= bytes + bytes / 8 + 64, "{bytes}");
        }
    }
}
