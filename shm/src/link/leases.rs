//! Which messages are still in use after they were popped.
//!
//! The arena is used in a circle, and what is leased must lie on one arc of at
//! most half of it: one word tells the producer what to go around, and what is
//! left holds the largest message wherever the arc is. A message that lies
//! outside of it is not leased but copied.

use std::collections::VecDeque;

use crate::link::arena::{Pin, distance, padded};
use crate::link::side::ProducerSide;
use crate::sync::{Arc, AtomicBool, Ordering};

/// More leases than this are not given; who keeps so many small messages copies them.
const LEASES_MAX: usize = if cfg!(loom) { 3 } else { 1024 };

/// What the leases share with the half that gave them: the memory, which lives until the last
/// is gone, and a mark for each.
#[derive(Debug)]
pub(crate) struct Returns {
    pub(crate) side: Arc<ProducerSide>,
    marks: Box<[AtomicBool]>,
}

impl Returns {
    /// Says that the lease with this mark is not used any more; from any thread.
    pub(crate) fn give_back(&self, mark: u32) {
        // Release pairs with the Acquire in `is_back`: who overwrites the message has seen the
        // end of all reading.
        self.marks[mark as usize].store(true, Ordering::Release);
    }

    fn is_back(&self, mark: u32) -> bool {
        // Acquire pairs with the Release in `give_back`.
        self.marks[mark as usize].load(Ordering::Acquire)
    }
}

/// One message that was leased.
#[derive(Clone, Copy, Debug)]
struct Held {
    offset: usize,
    len: usize,
    mark: u32,
}

/// All leases of a link, as its consumer sees them.
#[derive(Debug)]
pub(crate) struct Leases {
    returns: Arc<Returns>,
    /// In the order of the arc. Those within it may be back already; the ends are not.
    held: VecDeque<Held>,
    unused_marks: Vec<u32>,
    arena_bytes: usize,
}

impl Leases {
    pub(crate) fn new(side: Arc<ProducerSide>, arena_bytes: usize) -> Leases {
        let marks = (0..LEASES_MAX).map(|_| AtomicBool::new(false)).collect();
        Leases {
            returns: Arc::new(Returns { side, marks }),
            held: VecDeque::new(),
            unused_marks: (0..LEASES_MAX as u32).rev().collect(),
            arena_bytes,
        }
    }

    pub(crate) fn returns(&self) -> &Arc<Returns> {
        &self.returns
    }

    /// Notes that the message at `offset` is kept, and gives it a mark; none if the arc would
    /// become longer than half of the arena, or there is no mark left.
    pub(crate) fn hold(&mut self, offset: usize, len: usize) -> Option<u32> {
        if self.unused_marks.is_empty() {
            self.collect_all();
        }
        let len = padded(len);
        let arc = self.arc();
        let most = self.arena_bytes / 2;
        let ahead = distance(arc.offset, offset, self.arena_bytes);
        let behind = distance(offset, arc.offset, self.arena_bytes);
        let longer_at_end = arc.len.max(ahead + len);
        let longer_at_front = len.max(behind + arc.len);
        let mark = *self.unused_marks.last()?;
        let held = Held { offset, len, mark };
        if self.held.is_empty() {
            if len > most {
                return None;
            }
            self.held.push_back(held);
        } else if longer_at_end <= longer_at_front {
            if longer_at_end > most {
                return None;
            }
            let place =
                |other: &Held| distance(arc.offset, other.offset, self.arena_bytes) <= ahead;
            let index = self.held.partition_point(place);
            self.held.insert(index, held);
        } else {
            if longer_at_front > most {
                return None;
            }
            self.held.push_front(held);
        }
        self.unused_marks.pop();
        Some(mark)
    }

    /// Shortens the arc by the leases at its ends that are back.
    #[inline]
    pub(crate) fn collect(&mut self) {
        while let Some(first) = self.held.front()
            && self.returns.is_back(first.mark)
        {
            let mark = first.mark;
            self.held.pop_front();
            self.reuse(mark);
        }
        while let Some(last) = self.held.back()
            && self.returns.is_back(last.mark)
        {
            let mark = last.mark;
            self.held.pop_back();
            self.reuse(mark);
        }
    }

    /// Takes the marks of all leases that are back.
    fn collect_all(&mut self) {
        for index in (0..self.held.len()).rev() {
            let mark = self.held[index].mark;
            if self.returns.is_back(mark) {
                self.held.remove(index);
                self.reuse(mark);
            }
        }
    }

    /// The arc that the leases span.
    #[inline]
    pub(crate) fn arc(&self) -> Pin {
        let (Some(first), Some(last)) = (self.held.front(), self.held.back()) else {
            return Pin::default();
        };
        let len = distance(first.offset, last.offset, self.arena_bytes) + last.len;
        Pin {
            offset: first.offset,
            len,
        }
    }

    /// How many are not back.
    pub(crate) fn count(&self) -> usize {
        let held = self.held.iter();
        held.filter(|held| !self.returns.is_back(held.mark)).count()
    }

    fn reuse(&mut self, mark: u32) {
        // The mark is this thread's until it goes out with the next lease.
        self.returns.marks[mark as usize].store(false, Ordering::Relaxed);
        self.unused_marks.push(mark);
    }
}
