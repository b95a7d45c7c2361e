//! The bounded channel of tokio, polled from outside of a runtime.

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::ring::queue::{Input, Output, Queue};

pub(crate) struct Tokio;

impl<T: Send> Queue<T> for Tokio {
    const NAME: &'static str = "tokio mpsc";
    type Input = Sender<T>;
    type Output = Receiver<T>;

    fn open(capacity: usize) -> (Sender<T>, Receiver<T>) {
        channel(capacity)
    }
}

impl<T: Send> Input<T> for Sender<T> {
    #[inline]
    fn put(&mut self, value: T) -> Result<(), T> {
        self.try_send(value).map_err(TrySendError::into_inner)
    }
}

impl<T: Send> Output<T> for Receiver<T> {
    #[inline]
    fn take(&mut self) -> Option<T> {
        self.try_recv().ok()
    }
}
