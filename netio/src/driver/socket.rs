//! What a driver is handed.

use std::io;
use std::net::{TcpListener, TcpStream};

use super::sim::{SimListener, SimStream};

/// A socket, connected or listening, that no driver has.
#[derive(Debug)]
pub enum Socket {
    /// A connection.
    Tcp(TcpStream),
    /// A listening socket.
    TcpListener(TcpListener),
    /// A connection of a simulated network.
    Sim(SimStream),
    /// A listening socket of a simulated network.
    SimListener(SimListener),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

impl From<TcpListener> for Socket {
    fn from(listener: TcpListener) -> Self {
        Self::TcpListener(listener)
    }
}

impl TryFrom<Socket> for TcpStream {
    type Error = io::Error;

    /// # Errors
    /// It is no TCP connection. It is closed then.
    fn try_from(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(stream) => Ok(stream),
            other => Err(unfit(&other, "a TCP connection")),
        }
    }
}

impl TryFrom<Socket> for TcpListener {
    type Error = io::Error;

    /// # Errors
    /// It is no listening TCP socket. It is closed then.
    fn try_from(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::TcpListener(listener) => Ok(listener),
            other => Err(unfit(&other, "a listening TCP socket")),
        }
    }
}

pub(super) fn unfit(socket: &Socket, wanted: &str) -> io::Error {
    let found = match socket {
        Socket::Tcp(_) => "a TCP connection",
        Socket::TcpListener(_) => "a listening TCP socket",
        Socket::Sim(_) => "a simulated connection",
        Socket::SimListener(_) => "a simulated listening socket",
    };
    let what = format!("{wanted} is needed, and this is {found}");
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
