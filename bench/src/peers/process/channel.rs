//! A bounded channel that takes part in two forms: polled as ours is, and waiting in its own way.

use std::marker::PhantomData;
use std::time::Duration;

use crate::ring::queue::{Input, Output, Queue};

/// A blocking channel from which nothing comes for so long has lost an element.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// How a channel is opened and used. What can't be sent comes back.
pub(super) trait Channel {
    /// As the output calls it where it is polled.
    const NAME: &'static str;
    /// The same where it waits in its own way.
    const BLOCKING_NAME: &'static str;
    type Sender<T: Send>: Send;
    type Receiver<T: Send>: Send;

    fn open<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    fn try_send<T: Send>(sender: &Self::Sender<T>, value: T) -> Result<(), T>;
    fn send<T: Send>(sender: &Self::Sender<T>, value: T) -> Result<(), T>;
    fn try_recv<T: Send>(receiver: &Self::Receiver<T>) -> Option<T>;
    fn recv_timeout<T: Send>(receiver: &Self::Receiver<T>, timeout: Duration) -> Option<T>;
}

/// A channel that never waits by itself.
pub(super) type Polled<C> = As<C, false>;

/// A channel that waits as its users have it.
pub(super) type Blocking<C> = As<C, true>;

/// A channel as a queue; `BLOCKING` waits as the channel does, and otherwise not at all.
pub(super) struct As<C, const BLOCKING: bool>(PhantomData<C>);

/// The end that sends.
pub(super) struct In<C: Channel, T: Send, const BLOCKING: bool>(C::Sender<T>);

/// The end that receives.
pub(super) struct Out<C: Channel, T: Send, const BLOCKING: bool>(C::Receiver<T>);

impl<C: Channel, T: Send, const BLOCKING: bool> Queue<T> for As<C, BLOCKING> {
    const NAME: &'static str = if BLOCKING { C::BLOCKING_NAME } else { C::NAME };
    type Input = In<C, T, BLOCKING>;
    type Output = Out<C, T, BLOCKING>;

    fn open(capacity: usize) -> (Self::Input, Self::Output) {
        let (sender, receiver) = C::open(capacity);
        (In(sender), Out(receiver))
    }
}

impl<C: Channel, T: Send, const BLOCKING: bool> Input<T> for In<C, T, BLOCKING> {
    #[inline]
    fn put(&mut self, value: T) -> Result<(), T> {
        if BLOCKING {
            return C::send(&self.0, value);
        }
        C::try_send(&self.0, value)
    }
}

impl<C: Channel, T: Send, const BLOCKING: bool> Output<T> for Out<C, T, BLOCKING> {
    #[inline]
    fn take(&mut self) -> Option<T> {
        match C::try_recv(&self.0) {
            None if BLOCKING => C::recv_timeout(&self.0, STUCK_AFTER),
            value => value,
        }
    }
}
