//! The registry through which the two ends of an edge find each other.
//!
//! A receiver listens under a host and a port; a sender connects to them. Where both are in one
//! process the registry itself proves it, and the edge is a ring; otherwise they make a
//! connection. Where that shows that both are on one host, the edge is over shared memory.
//! Which transport an edge got is chosen once, at open, and stays visible:
//! [`Sender::transport`], [`Sender::why_not_shared`], and [`DataPlane::stats`].
//!
//! The lock is taken to open an edge and to give it up, never to move an element. Connections
//! are driven by a side thread, `ringway-io`, which starts with the first of them, unless
//! the options name other [`Links`](crate::edge::remote::Links).
//!
//! ```
//! use ringway::batch::{Row, Rows};
//! use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
//! use ringway::edge::{Popped, Transport};
//! use ringway::element::StreamElement;
//! use ringway_shm::Bell;
//!
//! let plane = DataPlane::new();
//! let row = StreamElement::Data(Rows::from(vec![Row::at(1_000, 42_i64)]));
//! for transport in [TransportChoice::Auto, TransportChoice::Socket] {
//!     let options = ListenOptions::new("127.0.0.1", 0);
//!     let listener = plane.listen::<Rows<i64>>(options, Bell::thread())?;
//!
//!     let options = ConnectOptions::default().transport(transport);
//!     let mut sender = plane.connect("127.0.0.1", listener.port(), Bell::thread(), options)?;
//!     let is_local = transport == TransportChoice::Auto;
//!     assert_eq!(sender.transport() == Transport::Local, is_local);
//!     let mut receiver = listener.accept()?;
//!
//!     sender.push(row.clone())?;
//!     assert_eq!(receiver.pop(), Popped::Element(row.clone()));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod endpoint;
mod error;
mod listener;
mod names;
mod options;
mod registry;
mod side_thread;
mod sockets;
mod streams;
mod switch;

pub use crate::edge::shared::DISABLE_SHARED_VARIABLE;
pub use error::{AcceptError, ConnectError, ListenError};
pub use listener::Listener;
pub use options::{ConnectOptions, ListenOptions, PlaneOptions, SharedDisabled, TransportChoice};
pub use registry::DataPlaneStats;
pub use streams::{AcceptedStream, StreamListener};
pub use switch::{DISABLE_LOCAL_VARIABLE, LocalOff, OffReason};

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::edge::Sender;
use crate::edge::remote::{LinksHandle, RemoteOptions};
use crate::wire::{PayloadCodec, Wired};

use endpoint::Endpoint;
use names::Names;
use registry::Registry;
use side_thread::SideThread;

/// Where listeners register and senders look them up. A clone is another handle to the same
/// registry.
#[derive(Clone)]
pub struct DataPlane {
    registry: Arc<Mutex<Registry>>,
    side_thread: Arc<SideThread>,
    remote: Arc<RemoteOptions>,
}

impl DataPlane {
    /// A registry of its own, in which only its own listeners are found. Whether the local
    /// transport is switched off by [`DISABLE_LOCAL_VARIABLE`] is read here, once.
    pub fn new() -> Self {
        Self::with_options(PlaneOptions::default())
    }

    /// As [`DataPlane::new`], with these options.
    pub fn with_options(options: PlaneOptions) -> Self {
        Self {
            registry: Arc::new(Mutex::new(Registry::new(switch::off_by_environment()))),
            side_thread: Arc::new(SideThread::new(options.driver)),
            remote: Arc::new(options.remote),
        }
    }

    /// The registry that everything in this process shares.
    pub fn process() -> Self {
        static PROCESS: LazyLock<DataPlane> = LazyLock::new(DataPlane::new);
        PROCESS.clone()
    }

    /// Listens for one sender, of this process or of another, which is told by
    /// `receiver_bell`; that also wakes whoever will own the receiver. Dropping the listener
    /// gives its port up.
    ///
    /// # Errors
    /// [`ListenError`] says with each case what to do.
    pub fn listen<B: Wired>(
        &self,
        options: ListenOptions,
        receiver_bell: Bell,
    ) -> Result<Listener<B>, ListenError> {
        self.listen_with(options, receiver_bell, B::codec())
    }

    /// As [`DataPlane::listen`], with an explicit codec.
    ///
    /// # Errors
    /// As for `listen`.
    pub fn listen_with<B: Payload>(
        &self,
        options: ListenOptions,
        receiver_bell: Bell,
        codec: Arc<dyn PayloadCodec<B>>,
    ) -> Result<Listener<B>, ListenError> {
        if !options.transport.allows_connection() {
            return self.listen_local(options, receiver_bell);
        }
        sockets::listen(self, options, receiver_bell, codec)
    }

    /// Registers an endpoint that takes elements from one sender of this process, of any
    /// payload: it needs no codec. Nothing is bound in the kernel.
    ///
    /// # Errors
    /// [`ListenError::InUse`]: drop the other listener first, or choose another port.
    /// [`ListenError::NoFreePort`]: give listeners up, or name the port.
    pub fn listen_local<B: Payload>(
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
        Ok(Listener::new(self.clone(), names, endpoint, None))
    }

    /// Listens for any number of senders of other processes, `served_max` at a time; the
    /// others wait. Nothing is registered for senders of this process.
    ///
    /// # Errors
    /// [`ListenError`] says with each case what to do.
    pub fn listen_for_streams<B: Payload>(
        &self,
        options: ListenOptions,
        bell: Bell,
        codec: Arc<dyn PayloadCodec<B>>,
        served_max: usize,
    ) -> Result<StreamListener<B>, ListenError> {
        streams::listen(self, options, bell, codec, served_max)
    }

    /// Connects to the endpoint that listens under `host` and `port`, and returns the sending
    /// half of the edge. `sender_bell` wakes whoever owns it. Blocks until the connection is
    /// there, where one is needed: not for a worker.
    ///
    /// Within this process a host is looked up as it is written, without name resolution; upper
    /// and lower case and the brackets of an IPv6 address make no difference. Name, capacity and
    /// byte bound of a ring are those that the listener chose.
    ///
    /// # Errors
    /// As [`ConnectError`] says with each case. No endpoint is left half open.
    pub fn connect<B: Wired>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
        options: ConnectOptions,
    ) -> Result<Sender<B>, ConnectError> {
        self.connect_with(host, port, sender_bell, options, B::codec())
    }

    /// As [`DataPlane::connect`], with an explicit codec.
    ///
    /// # Errors
    /// As for `connect`.
    pub fn connect_with<B: Payload>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
        options: ConnectOptions,
        codec: Arc<dyn PayloadCodec<B>>,
    ) -> Result<Sender<B>, ConnectError> {
        let found = match options.transport.allows_local() {
            true => self.resolve_local(host, port, sender_bell.clone()),
            false => Err(ConnectError::NotListening {
                endpoint: names::display(host, port),
            }),
        };
        let elsewhere = match &found {
            Err(ConnectError::NotListening { .. } | ConnectError::LocalDisabled { .. }) => true,
            Err(_) | Ok(_) => false,
        };
        let result = match found {
            // Whether the peer is on this host, so that they share memory, shows when they have met.
            Err(_) if elsewhere && options.transport.allows_connection() => {
                sockets::connect(self, host, port, sender_bell, options, codec)
            }
            found => found,
        };
        self.note(host, port, result)
    }

    /// As [`DataPlane::connect`], for a listener of this process and any payload.
    ///
    /// # Errors
    /// As for `connect`, but never [`ConnectError::Unreachable`].
    pub fn connect_local<B: Payload>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
    ) -> Result<Sender<B>, ConnectError> {
        let result = self.resolve_local(host, port, sender_bell);
        self.note(host, port, result)
    }

    /// The links of the side thread, which is started if it does not run.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub fn links(&self) -> Result<LinksHandle, String> {
        self.side_thread.links()
    }

    /// Waits until the peers of all streams that are over know how they ended, at most for
    /// `timeout`: for a process that is about to exit, which would take with it what is still to
    /// be said. Drop halves and listeners before; where some are left, or a peer does not
    /// listen, it returns false after that time. Connections that are made after it have a side
    /// thread of their own.
    pub fn close(&self, timeout: Duration) -> bool {
        self.side_thread.close(timeout)
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

    fn resolve_local<B: Payload>(
        &self,
        host: &str,
        port: u16,
        sender_bell: Bell,
    ) -> Result<Sender<B>, ConnectError> {
        let endpoint = self.lock().resolve::<B>(host, port)?;
        endpoint
            .connect(sender_bell)
            .map_err(|refusal| refusal.at(names::display(host, port)))
    }

    /// Counts what became of a sender, and tells it.
    fn note<B: Payload>(
        &self,
        host: &str,
        port: u16,
        result: Result<Sender<B>, ConnectError>,
    ) -> Result<Sender<B>, ConnectError> {
        self.lock().count(result.as_ref().map(Sender::transport));
        match &result {
            Ok(sender) => tracing::debug!(
                edge = sender.name(), host, port, transport = %sender.transport(), "edge opened"
            ),
            Err(error) => tracing::debug!(host, port, %error, "edge refused"),
        }
        result
    }

    /// What holds for a connection that is not told otherwise.
    fn remote(&self) -> &RemoteOptions {
        &self.remote
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
