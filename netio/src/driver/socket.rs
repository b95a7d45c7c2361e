//! What a driver is handed.

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
