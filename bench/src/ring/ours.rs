//! The ring of this project, with waking on.

use ringway_shm::{Bell, Consumer, Producer, PushError, ring};

use super::queue::{Input, Output, Queue};

pub(crate) struct Ours;

impl<T: Send> Queue<T> for Ours {
    const NAME: &'static str = "ringway";
    type Input = Producer<T>;
    type Output = Consumer<T>;

    fn open(capacity: usize) -> (Producer<T>, Consumer<T>) {
        ring(capacity, Bell::thread(), Bell::thread())
    }
}

impl<T: Send> Input<T> for Producer<T> {
    #[inline]
    fn put(&mut self, value: T) -> Result<(), T> {
        self.try_push(value).map_err(PushError::into_inner)
    }

    #[inline]
    fn put_chunk(&mut self, values: &mut impl Iterator<Item = T>, max: usize) -> usize {
        self.push_up_to(max, values)
    }
}

impl<T: Send> Output<T> for Consumer<T> {
    #[inline]
    fn take(&mut self) -> Option<T> {
        self.try_pop().ok()
    }

    #[inline]
    fn take_chunk(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        let chunk = self.pop_chunk(max);
        let taken = chunk.len();
        chunk.for_each(each);
        taken
    }
}
