//! The bounded channels that have taken over the interface of the standard library's.

use std::time::Duration;

use super::channel::Channel;

/// A [`Channel`] under this name, of this module, where the end that sends and what opens a channel
/// are called so; all else is called alike in every one.
macro_rules! channel {
    ($channel:ident = $name:literal, $($of:ident)::+, $sender:ident, $open:ident) => {
        impl Channel for $channel {
            const NAME: &'static str = $name;
            const BLOCKING_NAME: &'static str = concat!($name, " blocking");
            type Sender<T: Send> = $($of)::+::$sender<T>;
            type Receiver<T: Send> = $($of)::+::Receiver<T>;

            fn open<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
                $($of)::+::$open(capacity)
            }

            #[inline]
            fn try_send<T: Send>(sender: &Self::Sender<T>, value: T) -> Result<(), T> {
                use $($of)::+::TrySendError::{Disconnected, Full};
                let sent = sender.try_send(value);
                sent.map_err(|(Full(value) | Disconnected(value))| value)
            }

            #[inline]
            fn send<T: Send>(sender: &Self::Sender<T>, value: T) -> Result<(), T> {
                sender.send(value).map_err(|error| error.0)
            }

            #[inline]
            fn try_recv<T: Send>(receiver: &Self::Receiver<T>) -> Option<T> {
                receiver.try_recv().ok()
            }

            #[inline]
            fn recv_timeout<T: Send>(
                receiver: &Self::Receiver<T>,
                timeout: Duration,
            ) -> Option<T> {
                receiver.recv_timeout(timeout).ok()
            }
        }
    };
}

/// That of the standard library, which is a form of crossbeam's.
pub(super) struct Standard;

channel!(
    Standard = "std sync_channel",
    std::sync::mpsc,
    SyncSender,
    sync_channel
);

/// That of the crate crossbeam-channel, which spins for a moment before it sleeps.
#[cfg(feature = "crossbeam-channel")]
pub(super) struct Crossbeam;

#[cfg(feature = "crossbeam-channel")]
channel!(
    Crossbeam = "crossbeam-channel",
    crossbeam_channel,
    Sender,
    bounded
);

/// That of the crate flume: a queue behind a lock.
#[cfg(feature = "flume")]
pub(super) struct Flume;

#[cfg(feature = "flume")]
channel!(Flume = "flume", flume, Sender, bounded);
