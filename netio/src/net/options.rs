//! What all our connections are set to, on both sides.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::sockopt;

use super::tcp::{self, Heard};

/// A connection on which nothing is heard is asked after this time.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// An unanswered question is repeated after this time.
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// How many questions go unanswered before the connection is lost.
pub const KEEPALIVE_PROBES: u32 = 5;

/// A connection whose peer's host acknowledges nothing for this time is lost, as far as it is
/// tended.
pub const USER_TIMEOUT: Duration = Duration::from_secs(35);

/// How often connections want to be tended.
pub const TEND_EVERY: Duration = Duration::from_secs(10);

/// What the peer's kernel does not answer is repeated after this time at the latest, from Linux
/// 6.15 on.
pub const REPEAT_MAX: Duration = Duration::from_secs(10);

/// A peer's host that answers none of so many questions in a row, and nothing else, is dead.
const QUESTIONS_UNANSWERED: u8 = 3;

/// What lets the kernel give a connection up when it would ask the next time.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A dead host is noticed in a minute, idle or not; a host that is alive is seen often enough.
const _: () = {
    let idle = KEEPALIVE_IDLE.as_secs() + KEEPALIVE_INTERVAL.as_secs() * KEEPALIVE_PROBES as u64;
    assert!(idle < 60);
    let tended = TEND_EVERY.as_secs() + USER_TIMEOUT.as_secs();
    assert!(tended + REPEAT_MAX.as_secs() < 60);
    assert!(REPEAT_MAX.as_secs() * (QUESTIONS_UNANSWERED as u64) < USER_TIMEOUT.as_secs());
    assert!(TEND_EVERY.as_secs() * 3 < USER_TIMEOUT.as_secs());
};

/// Asks for the bytes that were sent and are not acknowledged.
const SIOCOUTQ: Opcode = 0x5411;

/// Asks for the bytes that wait to be sent.
const SIOCOUTQNSD: Opcode = 0x894b;

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
    // An older kernel asks less often, and tells later.
    let _ = tcp::set_repeat_max(stream, REPEAT_MAX);
    Ok(())
}

/// Lets the kernel give a connection up whose peer's host is silent, but not one whose peer
/// merely does not read. It wants to be called every [`TEND_EVERY`].
///
/// TCP_USER_TIMEOUT alone ends both: while the peer's window is closed, the kernel counts the
/// time whether its questions are answered or not. But then all that was sent is acknowledged,
/// and the rest waits, which can be seen; and so can how many questions have no answer, and when
/// the last one came. A dead host is given up within a minute in either case, if the kernel asks
/// often enough, which it can be told to from Linux 6.15 on ([`REPEAT_MAX`]). An older one asks
/// less and less often, down to every two minutes: there, a host that dies while its window has
/// been closed for long is given up after as much as eight minutes.
///
/// # Errors
/// The socket is none of TCP, or broken.
pub fn tend_stream(stream: &TcpStream) -> io::Result<()> {
    tend(stream, USER_TIMEOUT)
}

fn tend(stream: &TcpStream, timeout: Duration) -> io::Result<()> {
    let unsent = queued_bytes::<SIOCOUTQNSD>(stream)?;
    let is_acknowledged = unacknowledged_bytes(stream)? <= unsent;
    let waits_for_the_peer = unsent > 0 && is_acknowledged;
    let timeout = if !waits_for_the_peer {
        timeout
    } else if Heard::of(stream).is_ok_and(|heard| is_silent(heard, timeout)) {
        AT_ONCE
    } else {
        // Also where nothing can be learnt of it.
        Duration::ZERO
    };
    sockopt::set_tcp_user_timeout(stream, timeout.as_millis() as u32)?;
    Ok(())
}

/// Whether a peer's host that was asked for room has not answered for so long.
fn is_silent(heard: Heard, timeout: Duration) -> bool {
    heard.probes >= QUESTIONS_UNANSWERED && heard.before >= timeout
}

/// How many bytes of a connection the peer's kernel has not acknowledged; a FIN counts as one.
///
/// # Errors
/// The socket is none of TCP, or its connection is broken: the kernel counts what it held then for
/// ever.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<usize> {
    let bytes = queued_bytes::<SIOCOUTQ>(&socket)?;
    if bytes > 0 {
        rustix::net::getpeername(&socket)?;
    }
    Ok(bytes)
}

fn queued_bytes<const REQUEST: Opcode>(socket: impl AsFd) -> io::Result<usize> {
    // SAFETY: the requests of this module write an int.
    let question = unsafe { Getter::<REQUEST, i32>::new() };
    // SAFETY: as above; what the descriptor is decides only whether the request is known.
    let bytes = unsafe { ioctl(socket, question) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::thread;
    use std::time::Instant;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn write_all_that_fits(stream: &mut TcpStream) -> usize {
        let mut bytes = 0;
        loop {
            match stream.write(&[7; 1 << 16]) {
                Ok(count) => bytes += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return bytes,
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_connection_sends_at_once_and_asks_a_silent_peer() {
        let (near, _far) = pair();
        set_stream_options(&near).unwrap();
        assert!(sockopt::tcp_nodelay(&near).unwrap());
        assert!(sockopt::socket_keepalive(&near).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&near).unwrap(), KEEPALIVE_IDLE);
        tend_stream(&near).unwrap();
        let timeout_ms = u128::from(sockopt::tcp_user_timeout(&near).unwrap());
        assert_eq!(timeout_ms, USER_TIMEOUT.as_millis());
    }

    #[test]
    fn a_peer_that_does_not_read_for_longer_than_the_timeout_is_not_given_up() {
        let timeout = Duration::from_secs(1);
        let (mut near, mut far) = pair();
        near.set_nonblocking(true).unwrap();
        tend(&near, timeout).unwrap();
        let mut written = write_all_that_fits(&mut near);
        let begin = Instant::now();
        while begin.elapsed() < timeout * 3 {
            tend(&near, timeout).unwrap();
            thread::sleep(Duration::from_millis(100));
            written += write_all_that_fits(&mut near);
        }
        let reader = thread::spawn(move || {
            let mut bytes = vec![0; written];
            far.read_exact(&mut bytes).unwrap();
        });
        reader.join().unwrap();
        // Once all is acknowledged, a silent host is given up again.
        while unacknowledged_bytes(&near).unwrap() > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        tend(&near, timeout).unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&near).unwrap(), 1000);
    }

    #[test]
    fn a_peer_that_does_not_read_is_asked_and_answers() {
        let (mut near, _far) = pair();
        set_stream_options(&near).unwrap();
        near.set_nonblocking(true).unwrap();
        write_all_that_fits(&mut near);
        let begin = Instant::now();
        let mut asked = 0;
        let mut last = Duration::ZERO;
        while asked < 3 {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it is never asked"
            );
            thread::sleep(Duration::from_millis(10));
            let heard = Heard::of(&near).unwrap();
            // Each answer is heard anew.
            asked += u32::from(heard.before < last);
            last = heard.before;
            assert!(!is_silent(heard, Duration::ZERO), "{heard:?}");
        }
    }

    #[test]
    fn a_host_is_silent_that_neither_answers_nor_says_anything_for_long() {
        let after = |probes, before_s| {
            let before = Duration::from_secs(before_s);
            is_silent(Heard { probes, before }, USER_TIMEOUT)
        };
        let long = USER_TIMEOUT.as_secs();
        assert!(after(3, long) && after(15, long * 20));
        assert!(!after(3, long - 1), "it was heard a moment ago");
        // An old kernel asks this seldom.
        assert!(
            !after(0, long * 3) && !after(2, long * 3),
            "too few questions"
        );
    }

    #[test]
    fn what_is_not_tcp_has_heard_of_nobody() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = TcpStream::from(OwnedFd::from(one));
        assert!(Heard::of(&stream).is_err());
        assert!(tend_stream(&stream).is_err());
    }
}
