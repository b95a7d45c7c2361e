//! A queue between a worker and a side thread, bounded in elements and in bytes. Either side
//! may be the worker: only the side thread ever waits.

use std::time::Duration;

use ringway_shm::{Bell, Consumer, PopError, Producer, PushError, ring};

use crate::limits::PARK_TIME_MAX;

/// What goes through a side channel.
pub(crate) struct Weighed<T> {
    value: T,
    bytes: usize,
}

/// A side channel's two ends. `pusher` and `popper` are the bells of either side.
pub(crate) fn side_channel<T>(
    capacity: usize,
    bytes_max: usize,
    pusher: Bell,
    popper: Bell,
) -> (SideSender<T>, SideReceiver<T>) {
    let (producer, consumer) = ring(capacity, pusher, popper);
    let sender = SideSender {
        producer,
        pushed_bytes: 0,
        bytes_max,
    };
    let consumer = Some(consumer);
    (sender, SideReceiver { consumer })
}

/// The end that is pushed into.
pub(crate) struct SideSender<T> {
    producer: Producer<Weighed<T>>,
    pushed_bytes: u64,
    bytes_max: usize,
}

impl<T> SideSender<T> {
    /// Pushes `value`, which holds on to `bytes`, or gives it back.
    pub(crate) fn try_push(&mut self, value: T, bytes: usize) -> Result<(), PushError<T>> {
        if self.is_abandoned() {
            return Err(PushError::Abandoned(value));
        }
        if !self.has_room() {
            return Err(PushError::Full(value));
        }
        let weighed = Weighed { value, bytes };
        match self.producer.try_push(weighed) {
            Ok(()) => {
                self.pushed_bytes += bytes as u64;
                Ok(())
            }
            Err(PushError::Full(weighed)) => Err(PushError::Full(weighed.value)),
            Err(PushError::Abandoned(weighed)) => Err(PushError::Abandoned(weighed.value)),
        }
    }

    /// Pushes `value` and waits for room; for the side thread. `Err` when the other side is
    /// gone.
    pub(crate) fn push(&mut self, mut value: T, bytes: usize) -> Result<(), Gone> {
        loop {
            value = match self.try_push(value, bytes) {
                Ok(()) => return Ok(()),
                Err(PushError::Abandoned(_)) => return Err(Gone),
                Err(PushError::Full(value)) => value,
            };
            let bell = self.producer.producer_bell();
            bell.arm();
            if self.is_abandoned() || (self.has_room() && self.producer.is_ready()) {
                bell.disarm();
            } else {
                bell.park(Some(PARK_TIME_MAX));
            }
        }
    }

    /// Waits for `time`; for the side thread. `Err` when the other side is gone.
    pub(crate) fn rest(&mut self, mut time: Duration) -> Result<(), Gone> {
        while !self.is_abandoned() {
            if time.is_zero() {
                return Ok(());
            }
            let bell = self.producer.producer_bell();
            let part = time.min(PARK_TIME_MAX);
            bell.arm();
            if self.is_abandoned() {
                bell.disarm();
                return Err(Gone);
            }
            // Rung early, for the queue has room again, it only rests less.
            bell.park(Some(part));
            time -= part;
        }
        Err(Gone)
    }

    /// Whether the other side is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.producer.is_abandoned()
    }

    /// Says that nothing more comes.
    pub(crate) fn finish(self) {
        self.producer.finish();
    }

    /// Whether the bytes that are queued leave room. A single value may exceed the bound, so
    /// that no value is too large to pass.
    fn has_room(&self) -> bool {
        let queued = self.pushed_bytes - self.producer.released();
        queued < self.bytes_max as u64
    }
}

/// The other side is gone: stop.
#[derive(Debug)]
pub(crate) struct Gone;

/// The end that is popped from.
pub(crate) struct SideReceiver<T> {
    consumer: Option<Consumer<Weighed<T>>>,
}

impl<T> SideReceiver<T> {
    /// The oldest value, if there is one.
    pub(crate) fn try_pop(&mut self) -> Result<T, PopError> {
        let consumer = self.consumer.as_mut().ok_or(PopError::Abandoned)?;
        let weighed = consumer.pop_quiet()?;
        consumer.release(weighed.bytes as u64);
        Ok(weighed.value)
    }

    /// The oldest value, waited for; for the side thread.
    pub(crate) fn pop(&mut self) -> Result<T, PopError> {
        let consumer = self.consumer.as_mut().ok_or(PopError::Abandoned)?;
        loop {
            match consumer.pop_blocking(None) {
                Err(PopError::Empty) => {}
                Err(ended) => return Err(ended),
                Ok(weighed) => {
                    consumer.release(weighed.bytes as u64);
                    return Ok(weighed.value);
                }
            }
        }
    }

    /// Takes nothing more: what is queued is dropped, and the other side is told.
    pub(crate) fn close(&mut self) {
        self.consumer = None;
    }
}
