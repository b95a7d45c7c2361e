//! The worlds in which the promises are kept: drivers, and the sockets for them.

use std::marker::PhantomData;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ringway_netio::driver::sim::{SimDriver, SimNetwork, SimOptions, SimStream};
use ringway_netio::driver::{Driver, DriverKind, EpollDriver, Socket, UringDriver};
use ringway_netio::probe;
use rustix::net::sockopt::set_socket_linger;

use crate::seed::Seeded;

/// A kind of driver, and where its sockets come from.
pub(crate) trait World {
    type Driver: Driver;
    /// Where a listener can be reached.
    type Address;

    const KIND: DriverKind;

    /// Whether time passes by itself, or only when told.
    const TIME_PASSES: bool = true;

    fn new() -> Self;

    fn driver(&mut self) -> Self::Driver;

    fn listener(&mut self) -> (Socket, Self::Address);

    /// Connects. The listener's queue takes it, whether it is accepted now or later.
    fn connect(&mut self, address: &Self::Address) -> Socket;

    /// Whether nobody listens there.
    fn is_refused(&mut self, address: &Self::Address) -> bool;

    /// Two ends of one connection.
    fn pair(&mut self) -> (Socket, Socket);

    /// Breaks a connection from its end (RST).
    fn reset(&mut self, socket: Socket);

    /// Lets a moment pass between two polls.
    fn pass(&mut self) {}
}

/// A driver of the kernel's sockets.
pub(crate) trait OverTcp: Driver + Sized {
    const KIND: DriverKind;

    fn open() -> Self;
}

/// TCP of this host.
pub(crate) struct Tcp<D>(PhantomData<D>);

pub(crate) type Epoll = Tcp<EpollDriver>;
pub(crate) type Uring = Tcp<UringDriver>;

impl OverTcp for EpollDriver {
    const KIND: DriverKind = DriverKind::Epoll;

    fn open() -> Self {
        Self::new().unwrap()
    }
}

impl OverTcp for UringDriver {
    const KIND: DriverKind = DriverKind::Uring;

    fn open() -> Self {
        Self::new().unwrap()
    }
}

impl<D: OverTcp> World for Tcp<D> {
    type Driver = D;
    type Address = SocketAddr;

    const KIND: DriverKind = D::KIND;

    fn new() -> Self {
        Self(PhantomData)
    }

    fn driver(&mut self) -> D {
        D::open()
    }

    fn listener(&mut self) -> (Socket, SocketAddr) {
        tcp_listener()
    }

    fn connect(&mut self, address: &SocketAddr) -> Socket {
        TcpStream::connect(address).unwrap().into()
    }

    fn is_refused(&mut self, address: &SocketAddr) -> bool {
        TcpStream::connect(address).is_err()
    }

    fn pair(&mut self) -> (Socket, Socket) {
        tcp_pair()
    }

    fn reset(&mut self, socket: Socket) {
        tcp_reset(socket);
    }
}

/// Whether there is no driver over io_uring here. Making one then says why.
pub(crate) fn uring_is_denied() -> bool {
    let Err(denial) = probe::driver().usable() else {
        return false;
    };
    assert_eq!(UringDriver::new().err(), Some(denial));
    true
}

/// The simulated network, whose time passes between polls.
pub(crate) struct Sim {
    network: SimNetwork,
    /// Says the seed when the test fails.
    _seeded: Seeded,
    listeners: usize,
}

impl World for Sim {
    type Driver = SimDriver;
    type Address = String;

    const KIND: DriverKind = DriverKind::Sim;
    const TIME_PASSES: bool = false;

    fn new() -> Self {
        let seeded = Seeded::new();
        Self {
            network: SimNetwork::new(SimOptions {
                seed: seeded.seed,
                ..SimOptions::default()
            }),
            _seeded: seeded,
            listeners: 0,
        }
    }

    fn driver(&mut self) -> SimDriver {
        SimDriver::new(&self.network).unwrap()
    }

    fn listener(&mut self) -> (Socket, String) {
        self.listeners += 1;
        let name = format!("listener {}", self.listeners);
        (self.network.listen(&name).unwrap(), name)
    }

    fn connect(&mut self, address: &String) -> Socket {
        self.network.connect(address).unwrap()
    }

    fn is_refused(&mut self, address: &String) -> bool {
        self.network.connect(address).is_err()
    }

    fn pair(&mut self) -> (Socket, Socket) {
        self.network.pair()
    }

    fn reset(&mut self, socket: Socket) {
        SimStream::try_from(socket).unwrap().reset();
    }

    fn pass(&mut self) {
        self.network.advance(Duration::from_micros(250));
    }
}

fn tcp_listener() -> (Socket, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}

fn tcp_pair() -> (Socket, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    (near.into(), far.into())
}

fn tcp_reset(socket: Socket) {
    let stream = TcpStream::try_from(socket).unwrap();
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}
