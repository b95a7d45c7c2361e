//! The edges that are held to the promises.

use std::net::{TcpListener, TcpStream};
use std::sync::LazyLock;

use ringway::batch::Payload;
use ringway::data_plane::{DataPlane, ListenOptions};
use ringway::edge::remote::{
    LinksHandle, RemoteOptions, RemoteParts, receive_over, send_over, spawn_links,
};
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Receiver, Sender, Transport, local};
use ringway::wire::Wired;
use ringway_netio::driver::{DriverChoice, open};
use ringway_netio::session::Negotiation;
use ringway_shm::Bell;
use rustix::net::sockopt;

use super::{EdgeSubject, Waiting};
use crate::block_on::block_on;
use crate::within::{LONG, until};

/// A local edge, opened directly.
pub struct LocalEdge;

/// A local edge, opened by listening and connecting.
pub struct RegisteredEdge;

/// An edge whose halves are awaited, where they wait.
pub struct AwaitedEdge<S>(pub S);

impl EdgeSubject for LocalEdge {
    fn name(&self) -> &'static str {
        "local edge"
    }

    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        local::open(options, sender_bell, receiver_bell)
    }
}

impl EdgeSubject for RegisteredEdge {
    fn name(&self) -> &'static str {
        "local edge from the registry"
    }

    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        let plane = DataPlane::new();
        let options = ListenOptions::new("0.0.0.0", 0).edge(options);
        let listener = plane.listen_local(options, receiver_bell);
        let listener = listener.expect("a free port");
        let sender = plane.connect_local("localhost", listener.port(), sender_bell);
        let sender = sender.expect("it listens");
        (sender, listener.accept().expect("a sender connected"))
    }
}

impl<S: EdgeSubject> EdgeSubject for AwaitedEdge<S> {
    fn name(&self) -> &'static str {
        "an edge that is awaited"
    }

    fn is_instant(&self) -> bool {
        self.0.is_instant()
    }

    fn has_one_clock(&self) -> bool {
        self.0.has_one_clock()
    }

    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        self.0.open_with(options, sender_bell, receiver_bell)
    }

    fn waiting<B: Payload>(&self) -> Waiting<B> {
        Waiting {
            push: |sender, element| block_on(sender.push_async(element)),
            pop: |receiver| block_on(receiver.pop_async()),
        }
    }
}

/// An edge over a loopback connection, with a side thread for either end.
#[derive(Clone)]
pub struct RemoteEdge {
    /// How failures call it.
    name: &'static str,
    sending: LinksHandle,
    receiving: LinksHandle,
    remote: RemoteOptions,
}

/// Edges over epoll, in the negotiated form.
pub static EPOLL: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::default().overtaking();
    RemoteEdge::new("socket over epoll", DriverChoice::Epoll, remote)
});

/// Edges over epoll, in version 1.
pub static EPOLL_V1: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::version_1().overtaking();
    RemoteEdge::new("socket over epoll, version 1", DriverChoice::Epoll, remote)
});

/// Edges over the best driver that this host allows, in the negotiated form: io_uring, unless
/// it is denied.
pub static BEST: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::default().overtaking();
    RemoteEdge::new("socket over the best driver", DriverChoice::Auto, remote)
});

/// Edges over the best driver, in version 1.
pub static BEST_V1: LazyLock<RemoteEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::version_1().overtaking();
    let name = "socket over the best driver, version 1";
    RemoteEdge::new(name, DriverChoice::Auto, remote)
});

/// Edges over shared memory, whose halves are on threads that wait for nothing else.
pub static SHARED: LazyLock<SharedEdge> = LazyLock::new(|| {
    let remote = RemoteOptions::default().sharing(Sharing::Require);
    let name = "shared memory";
    SharedEdge(RemoteEdge::new(name, DriverChoice::Auto, remote))
});

/// Edges over shared memory whose receivers copy all of it.
pub static SHARED_COPIED: LazyLock<SharedEdge> = LazyLock::new(|| {
    let mut remote = RemoteOptions::default().sharing(Sharing::Require);
    remote.shared.copies = true;
    let name = "shared memory, copied";
    SharedEdge(RemoteEdge::new(name, DriverChoice::Epoll, remote))
});

/// An edge over shared memory, with a side thread for either end of its connection.
#[derive(Clone)]
pub struct SharedEdge(pub RemoteEdge);

impl EdgeSubject for SharedEdge {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn has_one_clock(&self) -> bool {
        false
    }

    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        let (mut sender, mut receiver) = self.0.open_with(options, sender_bell, receiver_bell);
        until(LONG, "both ends have met", || {
            let ends = (sender.poll_transport(), receiver.poll_transport());
            ends == (Some(Transport::Shared), Some(Transport::Shared))
        });
        (sender, receiver)
    }
}

/// Bytes that the kernel is asked to hold of a connection, so that an edge is full soon.
pub const KERNEL_BYTES: usize = 4096;

impl RemoteEdge {
    /// Edges over a driver, in a form of the wire.
    pub fn new(name: &'static str, driver: DriverChoice, remote: RemoteOptions) -> Self {
        let links = || {
            let opened = move || Ok(open(driver).map_err(std::io::Error::other)?.driver);
            spawn_links(opened).expect("a driver").0
        };
        Self {
            name,
            sending: links(),
            receiving: links(),
            remote,
        }
    }

    /// The four of them.
    pub fn all() -> [&'static Self; 4] {
        [&EPOLL, &EPOLL_V1, &BEST, &BEST_V1]
    }

    /// Where its senders are driven.
    pub fn sending(&self) -> &LinksHandle {
        &self.sending
    }

    /// Where its receivers are driven.
    pub fn receiving(&self) -> &LinksHandle {
        &self.receiving
    }

    /// The same, with its options changed.
    pub fn with(&self, change: impl FnOnce(&mut RemoteOptions)) -> Self {
        let mut other = self.clone();
        change(&mut other.remote);
        other
    }

    /// Sends over a connection.
    pub fn sender<B: Wired>(&self, socket: TcpStream, edge: &EdgeOptions) -> Sender<B> {
        let parts = self.parts(edge, Bell::thread());
        send_over(&self.sending, socket.into(), parts).expect("links")
    }

    /// Receives over a connection.
    pub fn receiver<B: Wired>(&self, socket: TcpStream, edge: &EdgeOptions) -> Receiver<B> {
        let parts = self.parts(edge, Bell::thread());
        receive_over(&self.receiving, socket.into(), parts).expect("links")
    }

    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        sockopt::set_socket_recv_buffer_size(&listener, KERNEL_BYTES).expect("an option");
        let address = listener.local_addr().expect("an address");
        let out = TcpStream::connect(address).expect("it listens");
        sockopt::set_socket_send_buffer_size(&out, KERNEL_BYTES).expect("an option");
        (out, listener.accept().expect("a connection").0)
    }

    fn parts<B: Wired>(&self, edge: &EdgeOptions, bell: Bell) -> RemoteParts<B> {
        RemoteParts {
            edge: edge.clone(),
            remote: self.remote.clone(),
            codec: B::codec(),
            peer: "loopback".to_owned(),
            bell,
        }
    }
}

impl EdgeSubject for RemoteEdge {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_instant(&self) -> bool {
        false
    }

    fn tells_reasons(&self) -> bool {
        self.remote.negotiation != Negotiation::Off
    }

    fn open_with<B: Wired>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        let (out, back) = Self::connection();
        let parts = self.parts(&options, sender_bell);
        let sender = send_over(&self.sending, out.into(), parts).expect("links");
        let parts = self.parts(&options, receiver_bell);
        let receiver = receive_over(&self.receiving, back.into(), parts).expect("links");
        (sender, receiver)
    }
}
