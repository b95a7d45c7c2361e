//! Handing links to the thread that drives them.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringway_shm::Bell;

use super::links::{Links, Orders};

/// Hands links and listeners to the thread that drives them, from any thread. A clone is
/// another handle to the same links.
#[derive(Clone)]
pub struct LinksHandle {
    mailbox: Arc<Mailbox>,
    bell: Bell,
}

/// The end of a handle that becomes [`Links`] on the thread that drives them.
pub struct LinksSeed {
    mailbox: OwnedMailbox,
    bell: Bell,
}

/// The mailbox of links that live, or will. When they are gone it takes no more.
pub(super) struct OwnedMailbox(Arc<Mailbox>);

/// Nobody drives these links any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread that drives these connections has ended")]
pub struct LinksGone;

/// Orders on their way. It is used when an edge is opened, never to move an element.
#[derive(Default)]
pub(super) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    orders: Orders,
    is_closed: bool,
}

/// A handle whose links do not exist yet, with the seed of them. `bell` wakes whoever will
/// drive them; it needs a descriptor if that one sleeps in the driver.
pub fn links_with(bell: Bell) -> (LinksHandle, LinksSeed) {
    let mailbox = Arc::new(Mailbox::default());
    let handle = LinksHandle::new(Arc::clone(&mailbox), bell.clone());
    let mailbox = OwnedMailbox(mailbox);
    (handle, LinksSeed { mailbox, bell })
}

/// As [`links_with`], with a bell of their own.
///
/// # Errors
/// No descriptor is left: raise the limit of open files.
pub fn links() -> io::Result<(LinksHandle, LinksSeed)> {
    Ok(links_with(Bell::descriptor()?))
}

impl LinksHandle {
    fn new(mailbox: Arc<Mailbox>, bell: Bell) -> Self {
        Self { mailbox, bell }
    }

    /// The bell of whoever drives the links.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Has something done by whoever drives the links.
    pub(super) fn submit(
        &self,
        order: impl FnOnce(&mut Links) + Send + 'static,
    ) -> Result<(), LinksGone> {
        let mut state = self.mailbox.lock();
        if state.is_closed {
            return Err(LinksGone);
        }
        state.orders.push_back(Box::new(order));
        drop(state);
        self.bell.ring();
        Ok(())
    }
}

impl LinksSeed {
    pub(super) fn into_parts(self) -> (OwnedMailbox, Bell) {
        (self.mailbox, self.bell)
    }
}

impl OwnedMailbox {
    pub(super) fn handle(&self, bell: Bell) -> LinksHandle {
        LinksHandle::new(Arc::clone(&self.0), bell)
    }

    /// Whether somebody can still hand something over.
    pub(super) fn has_handles(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(super) fn take(&self) -> Orders {
        self.0.take()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().orders.is_empty()
    }
}

impl Drop for OwnedMailbox {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Mailbox {
    fn take(&self) -> Orders {
        let mut state = self.lock();
        match state.orders.is_empty() {
            true => Orders::new(),
            false => std::mem::take(&mut state.orders),
        }
    }

    /// Takes no more. What waits is dropped, and with it the halves that it would have served.
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.orders);
        drop(state);
        drop(dropped);
    }

    /// No order leaves a broken state behind, so a panic elsewhere is no reason to refuse.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LinksHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinksHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for LinksSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinksSeed").finish_non_exhaustive()
    }
}
