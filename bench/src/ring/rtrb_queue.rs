//! The ring of the crate rtrb, which can't wake anyone.

use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use super::queue::{Input, Output, Queue};

pub(crate) struct Rtrb;

impl<T: Send> Queue<T> for Rtrb {
    const NAME: &'static str = "rtrb";
    type Input = Producer<T>;
    type Output = Consumer<T>;

    fn open(capacity: usize) -> (Producer<T>, Consumer<T>) {
        RingBuffer::new(capacity)
    }
}

impl<T: Send> Input<T> for Producer<T> {
    #[inline]
    fn put(&mut self, value: T) -> Result<(), T> {
        self.push(value).map_err(|PushError::Full(value)| value)
    }

    #[inline]
    fn put_chunk(&mut self, values: &mut impl Iterator<Item = T>, max: usize) -> usize {
        let slots = match self.write_chunk_uninit(max) {
            Ok(chunk) => return chunk.fill_from_iter(values),
            Err(ChunkError::TooFewSlots(slots)) => slots,
        };
        self.write_chunk_uninit(slots)
            .map_or(0, |chunk| chunk.fill_from_iter(values))
    }
}

impl<T: Send> Output<T> for Consumer<T> {
    #[inline]
    fn take(&mut self) -> Option<T> {
        self.pop().ok()
    }

    #[inline]
    fn take_chunk(&mut self, max: usize, each: impl FnMut(T)) -> usize {
        let chunk = match self.read_chunk(max) {
            Err(ChunkError::TooFewSlots(0)) => return 0,
            Err(ChunkError::TooFewSlots(slots)) => self.read_chunk(slots),
            chunk => chunk,
        };
        chunk.map_or(0, |chunk| {
            let taken = chunk.len();
            chunk.into_iter().for_each(each);
            taken
        })
    }
}
