//! Connecting, with patience for a peer that is still starting.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{Attempt, ConnectError, HostPort, Resolving};
use crate::random::Random;

/// How long a wait lasts that nothing wakes from: a name is being resolved.
const TICK: Duration = Duration::from_millis(2);

/// How patient connecting is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// After this time it fails. 30 s by default.
    pub time_limit: Duration,
    /// One try at one address takes no longer. 5 s by default.
    pub try_limit: Duration,
    /// The pause after all addresses have failed for the first time; it doubles from then on.
    /// 20 ms by default.
    pub pause: Duration,
    /// The longest pause. 1 s by default.
    pub pause_max: Duration,
}

/// A connection that is being made.
///
/// All addresses of the peer are tried, one after the other; when all have failed, they are
/// resolved and tried again after a pause, until the time limit. Pauses grow, and are of random
/// length, so that peers which start together do not come back together.
#[derive(Debug)]
pub struct Connecting {
    to: HostPort,
    options: ConnectOptions,
    began: Duration,
    phase: Phase,
    pause: Duration,
    random: Random,
    attempts: Vec<Attempt>,
    resolving: Option<io::Error>,
}

#[derive(Debug)]
enum Phase {
    Resolving(Resolving),
    Trying {
        current: Option<Try>,
        next: VecDeque<SocketAddr>,
    },
    Pausing {
        until: Duration,
    },
    Over,
}

/// A try at one address.
#[derive(Debug)]
struct Try {
    socket: OwnedFd,
    address: SocketAddr,
    until: Duration,
}

/// Connects. Blocks for up to the time limit: not for a worker, which polls a [`Connecting`].
/// `now` tells the time since an instant of the caller's choice.
///
/// # Errors
/// Nobody answered in time; the error lists each address with the reason.
pub fn connect(
    to: &HostPort,
    options: &ConnectOptions,
    now: impl Fn() -> Duration,
) -> Result<TcpStream, ConnectError> {
    let mut connecting = Connecting::start(to, options, now());
    loop {
        if let Some(stream) = connecting.poll(now())? {
            return Ok(stream);
        }
        connecting.wait(now());
    }
}

impl Connecting {
    /// Begins. Never blocks.
    pub fn start(to: &HostPort, options: &ConnectOptions, now: Duration) -> Self {
        Self {
            to: to.clone(),
            options: options.clone(),
            began: now,
            phase: Phase::Resolving(Resolving::start(to)),
            pause: options.pause,
            // Without randomness pauses are merely alike.
            random: Random::from_seed(getrandom::u64().unwrap_or(1)),
            attempts: Vec::new(),
            resolving: None,
        }
    }

    /// The connection, once it is there. Never blocks. After an answer it has nothing more to
    /// say.
    ///
    /// # Errors
    /// The time limit has passed. See [`connect`].
    pub fn poll(&mut self, now: Duration) -> Result<Option<TcpStream>, ConnectError> {
        loop {
            if matches!(self.phase, Phase::Over) {
                return Ok(None);
            }
            match self.step(now) {
                Step::Done(stream) => {
                    self.phase = Phase::Over;
                    return Ok(Some(stream));
                }
                Step::Next => {}
                Step::Wait if now >= self.deadline() => return Err(self.fail(now)),
                Step::Wait => return Ok(None),
            }
        }
    }

    /// Blocks until polling again makes sense. For a thread that may.
    pub fn wait(&self, now: Duration) {
        let deadline = self.deadline();
        let (until, socket) = match &self.phase {
            Phase::Resolving(_) => (now.saturating_add(TICK), None),
            Phase::Trying { current, .. } => match current {
                Some(current) => (current.until, Some(&current.socket)),
                None => (now, None),
            },
            Phase::Pausing { until } => (*until, None),
            Phase::Over => (now, None),
        };
        let timeout = until.min(deadline).saturating_sub(now);
        // More than the kernel can count is for ever.
        let timeout = Timespec::try_from(timeout).ok();
        // A failed wait was a short one: polling finds out what is the matter.
        let _ = match socket {
            Some(socket) => poll(&mut [PollFd::new(socket, PollFlags::OUT)], timeout.as_ref()),
            None => poll(&mut [], timeout.as_ref()),
        };
    }

    fn deadline(&self) -> Duration {
        self.began.saturating_add(self.options.time_limit)
    }

    fn step(&mut self, now: Duration) -> Step {
        match &mut self.phase {
            Phase::Resolving(resolving) => match resolving.poll() {
                None => Step::Wait,
                Some(Ok(addresses)) => {
                    self.resolving = None;
                    self.phase = Phase::Trying {
                        current: None,
                        next: addresses.into(),
                    };
                    Step::Next
                }
                Some(Err(error)) => {
                    self.resolving = Some(error);
                    self.rest(now)
                }
            },
            Phase::Trying { current, next } => {
                if let Some(running) = current.take() {
                    return match running.finish(now) {
                        Finish::Done(stream) => Step::Done(stream),
                        Finish::Failed(address, error) => {
                            ConnectError::note(&mut self.attempts, address, error);
                            Step::Next
                        }
                        Finish::Running(running) => {
                            *current = Some(running);
                            Step::Wait
                        }
                    };
                }
                let Some(address) = next.pop_front() else {
                    return self.rest(now);
                };
                match Try::start(address, now.saturating_add(self.options.try_limit)) {
                    Ok(running) => *current = Some(running),
                    Err(error) => ConnectError::note(&mut self.attempts, address, error),
                }
                Step::Next
            }
            Phase::Pausing { until } if now < *until => Step::Wait,
            Phase::Pausing { .. } => {
                self.phase = Phase::Resolving(Resolving::start(&self.to));
                Step::Next
            }
            Phase::Over => Step::Wait,
        }
    }

    /// Pauses, for between half and all of the time.
    fn rest(&mut self, now: Duration) -> Step {
        let share = 500 + self.random.below(500) as u32;
        let pause = (self.pause / 1000).saturating_mul(share);
        self.phase = Phase::Pausing {
            until: now.saturating_add(pause),
        };
        self.pause = self.pause.saturating_mul(2).min(self.options.pause_max);
        Step::Wait
    }

    fn fail(&mut self, now: Duration) -> ConnectError {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        if let Phase::Trying {
            current: Some(current),
            ..
        } = phase
        {
            ConnectError::note(&mut self.attempts, current.address, no_answer());
        }
        ConnectError {
            to: self.to.clone(),
            waited: now.saturating_sub(self.began),
            attempts: std::mem::take(&mut self.attempts),
            resolving: self.resolving.take(),
        }
    }
}

enum Step {
    Done(TcpStream),
    /// There is more to do at once.
    Next,
    Wait,
}

enum Finish {
    Done(TcpStream),
    Failed(SocketAddr, io::Error),
    Running(Try),
}

impl Try {
    fn start(address: SocketAddr, until: Duration) -> io::Result<Self> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(Self {
                socket,
                address,
                until,
            }),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self, now: Duration) -> Finish {
        let mut waiting = [PollFd::new(&self.socket, PollFlags::OUT)];
        let answered = match poll(&mut waiting, Some(&Timespec::default())) {
            Ok(count) => count > 0,
            Err(_) => false,
        };
        if !answered {
            return if now < self.until {
                Finish::Running(self)
            } else {
                Finish::Failed(self.address, no_answer())
            };
        }
        let address = self.address;
        match connected(self.socket) {
            Ok(stream) => Finish::Done(stream),
            Err(error) => Finish::Failed(address, error),
        }
    }
}

fn connected(socket: OwnedFd) -> io::Result<TcpStream> {
    socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    // Where nobody listens at a port that the kernel gives out itself, it may connect a socket
    // to its own address.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(Errno::CONNREFUSED.into());
    }
    Ok(stream)
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer")
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(30),
            try_limit: Duration::from_secs(5),
            pause: Duration::from_millis(20),
            pause_max: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::bind;
    use std::thread;
    use std::time::Instant;

    fn options(time_limit_ms: u64) -> ConnectOptions {
        ConnectOptions {
            time_limit: Duration::from_millis(time_limit_ms),
            ..ConnectOptions::default()
        }
    }

    fn connect_within(to: &HostPort, time_limit_ms: u64) -> Result<TcpStream, ConnectError> {
        let begin = Instant::now();
        connect(to, &options(time_limit_ms), || begin.elapsed())
    }

    /// A port that nobody else can take, and at which nobody listens as long as the socket does
    /// not.
    fn closed_port() -> (OwnedFd, HostPort) {
        let flags = SocketFlags::CLOEXEC;
        let family = AddressFamily::INET;
        let socket = socket_with(family, SocketType::STREAM, flags, None).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        rustix::net::bind(&socket, &any).unwrap();
        let address = rustix::net::getsockname(&socket).unwrap();
        let address = SocketAddr::try_from(address).unwrap();
        (socket, HostPort::from(address))
    }

    #[test]
    fn a_listener_is_reached_by_name_and_by_address() {
        let bound = bind(&HostPort::new("127.0.0.1", 0)).unwrap();
        for host in ["localhost", "127.0.0.1"] {
            let to = HostPort::new(host, bound.address.port());
            let stream = connect_within(&to, 30_000).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), bound.address);
        }
    }

    #[test]
    fn ipv6_is_spoken_where_the_host_has_it() {
        let to = match bind(&HostPort::new("::1", 0)) {
            Ok(bound) => {
                let to = HostPort::from(bound.address);
                let stream = connect_within(&to, 30_000).unwrap();
                assert!(stream.peer_addr().unwrap().is_ipv6());
                return;
            }
            // Then it is an error like any other.
            Err(_) => HostPort::new("::1", 7000),
        };
        let error = connect_within(&to, 50).unwrap_err();
        assert!(error.to_string().contains("[::1]"), "{error}");
    }

    #[test]
    fn a_listener_that_starts_late_is_waited_for() {
        let (socket, to) = closed_port();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            rustix::net::listen(&socket, 1).unwrap();
            rustix::net::accept(&socket).unwrap();
        });
        let begin = Instant::now();
        connect_within(&to, 30_000).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(250));
        thread.join().unwrap();
    }

    #[test]
    fn at_a_closed_port_it_fails_in_time_and_names_each_address_with_its_reason() {
        let (_socket, to) = closed_port();
        let begin = Instant::now();
        let error = connect_within(&to, 300).unwrap_err();
        assert!(begin.elapsed() >= Duration::from_millis(300));
        assert_eq!(error.attempts.len(), 1);
        assert!(error.attempts[0].tries > 2, "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!(": {to}: ")), "{said}");
        assert!(said.contains("refused"), "{said}");
    }

    #[test]
    fn a_name_that_nobody_knows_fails_in_time_and_says_so() {
        let to = HostPort::new("no-such-host.invalid", 7000);
        let error = connect_within(&to, 200).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("no-such-host.invalid:7000"), "{said}");
        assert!(said.contains("the name"), "{said}");
        assert!(error.attempts.is_empty());
    }

    #[test]
    fn times_without_measure_are_times_like_others() {
        let (socket, to) = closed_port();
        let options = ConnectOptions {
            time_limit: Duration::MAX,
            try_limit: Duration::MAX,
            pause: Duration::MAX,
            pause_max: Duration::MAX,
        };
        let now = Duration::from_secs(1);
        let mut connecting = Connecting::start(&to, &options, now);
        while !matches!(connecting.phase, Phase::Pausing { .. }) {
            assert!(connecting.poll(now).unwrap().is_none());
            thread::yield_now();
        }
        let thread = thread::spawn(move || connecting.wait(now));
        thread::sleep(Duration::from_millis(50));
        assert!(!thread.is_finished(), "a wait of that length is over");

        rustix::net::listen(&socket, 1).unwrap();
        let patient = ConnectOptions {
            time_limit: Duration::MAX,
            try_limit: Duration::MAX,
            ..ConnectOptions::default()
        };
        let begin = Instant::now();
        connect(&to, &patient, || begin.elapsed()).unwrap();
    }

    #[test]
    fn polling_never_blocks_and_pauses_grow() {
        let (_socket, to) = closed_port();
        let mut connecting = Connecting::start(&to, &options(600_000), Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        while pauses.len() < 12 {
            assert!(connecting.poll(now).unwrap().is_none());
            if let Phase::Pausing { until } = connecting.phase {
                pauses.push(until - now);
                now = until;
            }
        }
        assert!(pauses[0] <= Duration::from_millis(20), "{pauses:?}");
        let last = pauses[11];
        let (shortest, longest) = (Duration::from_millis(500), Duration::from_secs(1));
        assert!(last >= shortest && last <= longest, "{pauses:?}");
        let error = connecting.poll(Duration::from_secs(601)).unwrap_err();
        assert_eq!(error.waited, Duration::from_secs(601));
        assert!(connecting.poll(now).unwrap().is_none(), "it has answered");
    }
}
