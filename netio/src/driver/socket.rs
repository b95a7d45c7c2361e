//! What a driver is handed.

use std::io;
use std::net::{TcpListener, TcpStream};

/// A socket, connected or listening, that no driver has.
#[derive(Debug)]
pub enum Socket {
    /// A connection.
    Tcp(TcpStream),
    /// A listening socket.
    TcpListener(TcpListener),
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
            Socket::TcpListener(_) => Err(unfit("a listening socket, not a connection")),
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
            Socket::Tcp(_) => Err(unfit("a connection, not a listening socket")),
        }
    }
}

fn unfit(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
