//! Where two processes find each other.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};

use ringway_shm::passing::{self, Receiving};

use crate::error::BenchError;

/// A name that another process may come to.
pub(crate) struct Meeting {
    listener: UnixListener,
    name: String,
}

impl Meeting {
    /// A name that nobody else has.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn arrange() -> Result<Self, BenchError> {
        static MEETINGS: AtomicU64 = AtomicU64::new(0);
        let number = MEETINGS.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringway-bench-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name)?;
        let listener = UnixListener::bind_addr(&address)?;
        Ok(Self { listener, name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the other process.
    ///
    /// # Errors
    /// When none can be accepted.
    pub(crate) fn accept(&self) -> Result<UnixStream, BenchError> {
        Ok(self.listener.accept()?.0)
    }
}

/// Goes where the other process waits.
///
/// # Errors
/// When it does not wait there.
pub(crate) fn join(name: &str) -> Result<UnixStream, BenchError> {
    let address = SocketAddr::from_abstract_name(name)?;
    Ok(UnixStream::connect_addr(&address)?)
}

/// Passes descriptors to the other process.
///
/// # Errors
/// When it is gone.
pub(crate) fn pass(stream: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> Result<(), BenchError> {
    Ok(passing::send(stream, b"", descriptors)?)
}

/// Waits for so many descriptors from the other process.
///
/// # Errors
/// When it is gone.
pub(crate) fn take<const N: usize>(stream: &UnixStream) -> Result<[OwnedFd; N], BenchError> {
    let mut receiving = Receiving::<N>::new();
    loop {
        // The stream blocks, so that nothing yet means that only a part has come.
        if let Some(received) = receiving.poll(stream)? {
            return Ok(received.descriptors);
        }
    }
}
