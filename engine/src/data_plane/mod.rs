//! The registry through which the two ends of an edge find each other.
//!
//! A receiver listens under a host and a port; a sender connects to them. Where both are in one
//! process the registry itself proves it, and the edge is a ring. Which transport an edge got
//! is chosen once, at open, and stays visible: [`Sender::transport`], and [`DataPlane::stats`].
//!
//! The lock is taken to open an edge and to give it up, never to move an element.
//!
//! ```
//! use ringway::batch::{Row, Rows};
//! use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions};
//! use ringway::edge::{Popped, Transport};
//! use ringway::element::StreamElement;
//! use ringway_shm::Bell;
//!
//! let plane = DataPlane::new();
//! let options = ListenOptions::new("0.0.0.0", 0).advertised("worker-3");
//! let listener = plane.listen::<Rows<i64>>(options, Bell::thread())?;
//!
//! let bell = Bell::thread();
//! let port = listener.port();
//! let mut sender = plane.connect("worker-3", port, bell, ConnectOptions::default())?;
//! assert_eq!(sender.transport(), Transport::Local);
//! let mut receiver = listener.accept()?;
//!
//! let row = StreamElement::Data(Rows::from(vec![Row::at(1_000, 42)]));
//! sender.push(row.clone())?;
//! assert_eq!(receiver.pop(), Popped::Element(row));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod endpoint;
mod error;
mod listener;
mod names;
mod options;
mod registry;
mod switch;

pub use error::{AcceptError, ConnectError, ListenError};
pub use listener::Listener;
pub use options::{ConnectOptions, ListenOptions, TransportChoice};
pub use registry::DataPlaneStats;
pub use switch::{DISABLE_LOCAL_VARIABLE, LocalOff, OffReason};

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::edge::Sender;

use endpoint::Endpoint;
use names::Names;
use registry::Registry;

/// Where listeners register and senders look them up. A clone is another handle to the same
/// registry.
#[derive(Clone)]
pub struct DataPlane {
    registry: Arc<Mutex<Registry>>,
}

impl DataPlane {
    /// A registry of its own, in which only its own listeners are found. Whether the local
    /// transport is switched off by [`DISABLE_LOCAL_VARIABLE`] is read here, once.
    pub fn new() -> Self {
        Self {
            registry: Arc::new(Mutex::new(Registry::new(switch::off_by_environment()))),
        }
    }

    /// The registry that everything in this process shares.
    pub fn process() -> Self {
        static PROCESS: LazyLock<DataPlane> = LazyLock::new(DataPlane::new);
        PROCESS.clone()
    }

    /// Registers an endpoint that takes elements with payload `B` from one sender.
    /// `receiver_bell` wakes whoever will own the receiver; it also rings when a sender has
    /// connected. Dropping the listener unregisters it under all its names.
    ///
    /// # Errors
    /// [`ListenError::InUse`]: drop the other listener first, or choose another port.
    /// [`ListenError::NoFreePort`]: give listeners up, or name the port.
    pub fn listen<B: Payload>(
        &self,
        options: ListenOptions,
        receiver_bell: Bell,
    ) -> Result<Listener<B>, ListenError> {
        let mut registry = self.lock();
        let port = match options.port {
            0 => registry.free_port()?,
            port => port,
        };
        let names = Names::new(&options, port);
        let endpoint = Arc::new(Endpoint::new(options.edge_at(port), receiver_bell));
        registry.register::<B>(names.clone(), endpoint.clone())?;
        Ok(Listener::new(self.clone(), names, endpoint))
    }

    /// Connects to the endpoint that listens under `host` and `port`, and returns the sending
    /// half of the edge. `sender_bell` wakes whoever owns it. Name, capacity and byte bound of
    /// the edge are those that the listener chose.
    ///
    /// A host is looked up as it is written, without name resolution; upper and lower case
    /// and the brackets of an IPv6 address make no difference.
    ///
    /// # Errors
    /// As [`ConnectError`] says with each case. No endpoint is left half open.
    pub fn connect<B: Payload>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
        options: ConnectOptions,
    ) -> Result<Sender<B>, ConnectError> {
        let result = self.connect_local(host, port, sender_bell, options);
        self.lock().count(&result);
        match &result {
            Ok(sender) => tracing::debug!(
                edge = sender.name(), host, port, transport = %sender.transport(), "edge opened"
            ),
            Err(error) => tracing::debug!(host, port, %error, "edge refused"),
        }
        result
    }

    /// Switches the local transport on or off for edges that are opened from now on. Open
    /// edges keep what they have. It is on by default, and off while any of the three
    /// [`OffReason`]s holds: on here does not overrule the other two.
    pub fn set_local_enabled(&self, enabled: bool) {
        self.lock().switch.set_enabled(enabled);
    }

    /// Switches the local transport off until the value returned is dropped. Several may
    /// be alive at once.
    pub fn local_off(&self) -> LocalOff {
        LocalOff::new(self.clone())
    }

    /// Whether an edge that is opened now may use the local transport.
    pub fn is_local_enabled(&self) -> bool {
        self.lock().switch.off_reason().is_none()
    }

    /// What was asked of this registry so far.
    pub fn stats(&self) -> DataPlaneStats {
        self.lock().stats()
    }

    fn connect_local<B: Payload>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
        options: ConnectOptions,
    ) -> Result<Sender<B>, ConnectError> {
        let endpoint = match options.transport {
            TransportChoice::Auto | TransportChoice::Local => {
                self.lock().resolve::<B>(host, port)?
            }
        };
        endpoint
            .connect(sender_bell)
            .map_err(|refusal| refusal.at(names::display(host, port)))
    }

    /// The registry is consistent between any two of its calls, so a panic elsewhere while it
    /// was locked is no reason to refuse.
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for DataPlane {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DataPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataPlane")
            .field("stats", &self.stats())
            .field("is_local_enabled", &self.is_local_enabled())
            .finish()
    }
}

#[cfg(test)]
mod tests;
