//! The bounded channel of the crate crossbeam-channel, which spins for a moment before it sleeps.

use crossbeam_channel::{Receiver, SendError, Sender, TrySendError, bounded};

use crate::ring::queue::{Input, Output, Queue};

use super::STUCK_AFTER;

/// `BLOCKING` waits as the channel does, and otherwise not at all.
pub(crate) struct Crossbeam<const BLOCKING: bool>;

/// The end that sends.
pub(crate) struct In<T, const BLOCKING: bool>(Sender<T>);

/// The end that receives.
pub(crate) struct Out<T, const BLOCKING: bool>(Receiver<T>);

impl<T: Send, const BLOCKING: bool> Queue<T> for Crossbeam<BLOCKING> {
    const NAME: &'static str = if BLOCKING {
        "crossbeam-channel blocking"
    } else {
        "crossbeam-channel"
    };
    type Input = In<T, BLOCKING>;
    type Output = Out<T, BLOCKING>;

    fn open(capacity: usize) -> (Self::Input, Self::Output) {
        let (sender, receiver) = bounded(capacity);
        (In(sender), Out(receiver))
    }
}

impl<T: Send, const BLOCKING: bool> Input<T> for In<T, BLOCKING> {
    #[inline]
    fn put(&mut self, value: T) -> Result<(), T> {
        if BLOCKING {
            return self.0.send(value).map_err(|SendError(value)| value);
        }
        self.0.try_send(value).map_err(TrySendError::into_inner)
    }
}

impl<T: Send, const BLOCKING: bool> Output<T> for Out<T, BLOCKING> {
    #[inline]
    fn take(&mut self) -> Option<T> {
        match self.0.try_recv() {
            Ok(value) => Some(value),
            Err(_) if BLOCKING => self.0.recv_timeout(STUCK_AFTER).ok(),
            Err(_) => None,
        }
    }
}
