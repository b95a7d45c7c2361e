//! The worlds in which the promises are kept: drivers, and the sockets for them.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ringway_netio::driver::{Driver, DriverKind, EpollDriver, Socket};
use rustix::net::sockopt::set_socket_linger;

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

/// epoll, over TCP of this host.
pub(crate) struct Epoll;

impl World for Epoll {
    type Driver = EpollDriver;
    type Address = SocketAddr;

    const KIND: DriverKind = DriverKind::Epoll;

    fn new() -> Self {
        Self
    }

    fn driver(&mut self) -> EpollDriver {
        EpollDriver::new().unwrap()
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
