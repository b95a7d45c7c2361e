//! A queue behind a lock, with two conditions to wait on: what is written first, and what a
//! ring replaces.
//!
//! It comes in two forms. [`Locked`] notifies the other side of every element, as bounded
//! channels of stream engines do; [`LockedOnEdge`] only when the other side may be waiting,
//! which takes more care and is faster. Neither has a way to put many elements in one go, so a
//! chunk is as many single elements.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::queue::{Input, Output, Queue};

/// `ALWAYS` notifies the other side of every element.
pub(crate) struct BehindLock<const ALWAYS: bool>;

pub(crate) type Locked = BehindLock<true>;

pub(crate) type LockedOnEdge = BehindLock<false>;

/// One end.
pub(crate) struct Half<T, const ALWAYS: bool>(Arc<Shared<T>>);

struct Shared<T> {
    queue: Mutex<VecDeque<T>>,
    capacity: usize,
    not_empty: Condvar,
    not_full: Condvar,
}

impl<T: Send, const ALWAYS: bool> Queue<T> for BehindLock<ALWAYS> {
    const NAME: &'static str = if ALWAYS {
        "mutex+condvar"
    } else {
        "mutex+condvar on edge"
    };
    type Input = Half<T, ALWAYS>;
    type Output = Half<T, ALWAYS>;

    fn open(capacity: usize) -> (Self::Input, Self::Output) {
        let shared = Shared::new(capacity);
        (Half(shared.clone()), Half(shared))
    }
}

impl<T> Shared<T> {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(VecDeque::with_capacity(capacity)),
            capacity,
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send, const ALWAYS: bool> Input<T> for Half<T, ALWAYS> {
    fn put(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.0;
        let queue = shared.lock();
        let waited = shared
            .not_full
            .wait_while(queue, |queue| queue.len() == shared.capacity);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        queue.push_back(value);
        if ALWAYS || queue.len() == 1 {
            shared.not_empty.notify_one();
        }
        Ok(())
    }
}

impl<T: Send, const ALWAYS: bool> Output<T> for Half<T, ALWAYS> {
    fn take(&mut self) -> Option<T> {
        let shared = &*self.0;
        let waited = shared
            .not_empty
            .wait_while(shared.lock(), |queue| queue.is_empty());
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let value = queue.pop_front();
        if ALWAYS || queue.len() + 1 == shared.capacity {
            shared.not_full.notify_one();
        }
        value
    }
}
