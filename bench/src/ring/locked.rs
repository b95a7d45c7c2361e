//! A queue behind a lock, with two conditions to wait on: what is written first, and what a
//! ring replaces.
//!
//! Of the usual forms it is the faster one: a side is notified only when it may be waiting.
//! It has no way to put many elements in one go, so a chunk is as many single elements.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::queue::{Input, Output, Queue};

pub(crate) struct Locked;

pub(crate) struct Half<T>(Arc<Shared<T>>);

struct Shared<T> {
    queue: Mutex<VecDeque<T>>,
    capacity: usize,
    not_empty: Condvar,
    not_full: Condvar,
}

impl<T: Send> Queue<T> for Locked {
    const NAME: &'static str = "mutex+condvar";
    type Input = Half<T>;
    type Output = Half<T>;

    fn open(capacity: usize) -> (Half<T>, Half<T>) {
        let shared = Arc::new(Shared {
            queue: Mutex::new(VecDeque::with_capacity(capacity)),
            capacity,
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        });
        (Half(shared.clone()), Half(shared))
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Input<T> for Half<T> {
    fn put(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.0;
        let queue = shared.lock();
        let waited = shared
            .not_full
            .wait_while(queue, |queue| queue.len() == shared.capacity);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        queue.push_back(value);
        if queue.len() == 1 {
            shared.not_empty.notify_one();
        }
        Ok(())
    }

    fn put_chunk(&mut self, values: &mut impl Iterator<Item = T>, max: usize) -> usize {
        let mut put = 0;
        for value in values.take(max) {
            put += usize::from(self.put(value).is_ok());
        }
        put
    }
}

impl<T: Send> Output<T> for Half<T> {
    fn take(&mut self) -> Option<T> {
        let shared = &*self.0;
        let waited = shared
            .not_empty
            .wait_while(shared.lock(), |queue| queue.is_empty());
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let value = queue.pop_front();
        if queue.len() + 1 == shared.capacity {
            shared.not_full.notify_one();
        }
        value
    }

    fn take_chunk(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        let mut taken = 0;
        while taken < max
            && let Some(value) = self.take()
        {
            each(value);
            taken += 1;
        }
        taken
    }
}
