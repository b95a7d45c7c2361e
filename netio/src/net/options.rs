//! What all our connections are set to, on both sides.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::sockopt;

/// A connection on which nothing is heard is asked after this time.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// An unanswered question is repeated after this time.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// How many questions go unanswered before the connection is lost.
pub const KEEPALIVE_PROBES: u32 = 5;

/// A connection whose peer's host acknowledges nothing for this time is lost.
pub const USER_TIMEOUT: Duration = Duration::from_secs(45);

const _: () = {
    let idle = KEEPALIVE_IDLE.as_secs() + KEEPALIVE_INTERVAL.as_secs() * KEEPALIVE_PROBES as u64;
    assert!(
        idle < 60 && USER_TIMEOUT.as_secs() < 60,
        "a dead host is noticed in a minute"
    );
};

/// Asks for the bytes that were sent and are not acknowledged.
const SIOCOUTQ: Opcode = 0x5411;

/// Sets a connection to send at once (a driver gathers by itself), and to notice a dead host.
///
/// # Errors
/// The socket is none of TCP, or broken.
pub fn set_stream_options(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_tcp_nodelay(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT.as_millis() as u32)?;
    Ok(())
}

/// How many bytes of a connection the peer's kernel has not acknowledged; a FIN counts as one.
///
/// # Errors
/// The socket is none of TCP.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<usize> {
    // SAFETY: this request writes an int.
    let question = unsafe { Getter::<SIOCOUTQ, i32>::new() };
    // SAFETY: as above; what the descriptor is decides only whether the request is known.
    let bytes = unsafe { ioctl(socket, question) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}
