//! The edge over a connection, with its links turned on the thread that uses it, as a worker
//! does.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::clock::Clock;
use ringway::edge::remote::{
    Links, LinksHandle, RemoteOptions, RemoteParts, links, receive_over, send_over,
};
use ringway::edge::{EdgeOptions, Receiver, Sender};
use ringway::wire::Wired;
use ringway_netio::driver::{DriverChoice, open};

use crate::edge::batches;
use crate::error::BenchError;

use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

/// How long an idle thread spins before it sleeps, as a worker does.
const SPIN: Duration = Duration::from_micros(50);
/// How long it sleeps at most.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Looks between two turns of links whose edges are over shared memory.
const LOOKS_PER_TURN: u32 = 1024;

/// Time after which a peer is taken to be stuck.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// What a thread does while it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// It spins for a while, and then sleeps.
    Adaptive,
    /// It never sleeps.
    Spin,
    /// It sleeps at once.
    Park,
}

impl Idle {
    pub(crate) const ALL: [Self; 3] = [Self::Spin, Self::Adaptive, Self::Park];

    /// As the names of cases have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Adaptive => "adaptive",
            Self::Park => "park",
        }
    }
}

/// The links of this thread.
pub(crate) struct OwnLinks {
    handle: LinksHandle,
    links: Links,
    idle: Idle,
    idle_since: Option<Instant>,
    looks: u32,
    is_armed: bool,
}

impl OwnLinks {
    /// Links over the driver that is used by default.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new(idle: Idle) -> Result<Self, BenchError> {
        let (handle, seed) = links()?;
        let driver = open(DriverChoice::from_option(None)?)?.driver;
        Ok(Self {
            handle,
            links: Links::new(seed, driver, Clock::start())?,
            idle,
            idle_since: None,
            looks: 0,
            is_armed: false,
        })
    }

    /// One turn. After one that did nothing it waits as its idle policy says, unless the caller
    /// has done something meanwhile.
    ///
    /// # Errors
    /// When nothing has happened for a minute.
    #[inline]
    pub(crate) fn turn(&mut self, has_worked: bool) -> Result<(), BenchError> {
        self.turn_until(has_worked, || Some(SLEEP_MAX))
    }

    /// As [`Self::turn`], without sleeping longer than `limit` says when it comes to that; none
    /// is not at all.
    ///
    /// # Errors
    /// As for `turn`.
    #[inline]
    pub(crate) fn turn_until(
        &mut self,
        has_worked: bool,
        limit: impl FnOnce() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        if self.links.turn() > 0 || has_worked {
            self.idle_since = None;
            return Ok(());
        }
        self.wait(limit)
    }

    fn wait(&mut self, limit: impl FnOnce() -> Option<Duration>) -> Result<(), BenchError> {
        self.looks += 1;
        std::hint::spin_loop();
        if self.idle != Idle::Park && !self.looks.is_multiple_of(16) {
            return Ok(());
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let idle_for = since.elapsed();
        if idle_for > STUCK_AFTER {
            return Err(BenchError::new(
                "nothing came for a minute: the peer is stuck",
            ));
        }
        match self.idle {
            Idle::Spin => {}
            Idle::Adaptive if idle_for < SPIN => {}
            Idle::Adaptive | Idle::Park => {
                if let Some(limit) = limit() {
                    self.links.park(limit.min(SLEEP_MAX));
                }
            }
        }
        Ok(())
    }

    /// As [`Self::turn`], for edges that the caller works on by itself, over shared memory: the
    /// links are turned now and then only. Before it sleeps, the caller gets a last look.
    ///
    /// # Errors
    /// As for `turn`.
    #[inline]
    pub(crate) fn rest(&mut self, has_worked: bool) -> Result<(), BenchError> {
        self.rest_until(has_worked, || Some(SLEEP_MAX))
    }

    /// As [`Self::rest`], without sleeping longer than `limit` says when it comes to that; none
    /// is not at all.
    ///
    /// # Errors
    /// As for `turn`.
    #[inline]
    pub(crate) fn rest_until(
        &mut self,
        has_worked: bool,
        limit: impl FnOnce() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        if !has_worked {
            return self.rest_more(limit);
        }
        if self.is_armed {
            self.is_armed = false;
            self.links.bell().disarm();
        }
        self.idle_since = None;
        Ok(())
    }

    fn rest_more(&mut self, limit: impl FnOnce() -> Option<Duration>) -> Result<(), BenchError> {
        if std::mem::take(&mut self.is_armed) {
            match limit() {
                Some(limit) => self.links.wait(limit.min(SLEEP_MAX)),
                None => self.links.bell().disarm(),
            }
            return Ok(());
        }
        self.looks += 1;
        std::hint::spin_loop();
        if self.idle != Idle::Park && !self.looks.is_multiple_of(LOOKS_PER_TURN) {
            return Ok(());
        }
        if self.links.turn() > 0 {
            self.idle_since = None;
            return Ok(());
        }
        let idle_for = self.idle_since.get_or_insert_with(Instant::now).elapsed();
        if idle_for > STUCK_AFTER {
            return Err(BenchError::new(
                "nothing came for a minute: the peer is stuck",
            ));
        }
        if self.idle == Idle::Park || (self.idle == Idle::Adaptive && idle_for >= SPIN) {
            self.links.bell().arm();
            if self.links.turn() > 0 {
                self.links.bell().disarm();
            } else {
                self.is_armed = true;
            }
        }
        Ok(())
    }

    /// Turns until nothing would be lost.
    ///
    /// # Errors
    /// When nothing has happened for a minute.
    pub(crate) fn finish(mut self) -> Result<(), BenchError> {
        while self.links.is_needed() {
            self.turn(false)?;
        }
        Ok(())
    }

    /// A sending end over a connection that is made.
    ///
    /// # Errors
    /// When the connection is refused.
    pub(crate) fn sender(
        &self,
        to: SocketAddr,
        remote: RemoteOptions,
    ) -> Result<Sender<RecordBatch>, BenchError> {
        let stream = TcpStream::connect(to)?;
        Ok(send_over(&self.handle, stream.into(), self.parts(remote))?)
    }

    /// A sending end over a connection that comes.
    ///
    /// # Errors
    /// When none can be accepted.
    pub(crate) fn sender_over(
        &self,
        listener: &TcpListener,
        remote: RemoteOptions,
    ) -> Result<Sender<RecordBatch>, BenchError> {
        let (stream, _) = listener.accept()?;
        Ok(send_over(&self.handle, stream.into(), self.parts(remote))?)
    }

    /// A receiving end over a connection that comes.
    ///
    /// # Errors
    /// When none can be accepted.
    pub(crate) fn receiver(
        &self,
        listener: &TcpListener,
        remote: RemoteOptions,
    ) -> Result<Receiver<RecordBatch>, BenchError> {
        let (stream, _) = listener.accept()?;
        Ok(receive_over(
            &self.handle,
            stream.into(),
            self.parts(remote),
        )?)
    }

    /// A receiving end over a connection that is made.
    ///
    /// # Errors
    /// When the connection is refused.
    pub(crate) fn receiver_over(
        &self,
        to: SocketAddr,
        remote: RemoteOptions,
    ) -> Result<Receiver<RecordBatch>, BenchError> {
        let stream = TcpStream::connect(to)?;
        Ok(receive_over(
            &self.handle,
            stream.into(),
            self.parts(remote),
        )?)
    }

    fn parts(&self, remote: RemoteOptions) -> RemoteParts<RecordBatch> {
        RemoteParts {
            edge: EdgeOptions::named("bench"),
            remote,
            codec: RecordBatch::codec(),
            peer: "the other process".to_owned(),
            bell: self.handle.bell().clone(),
        }
    }
}

/// Sends `count` batches and the end of the stream.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(
    to: SocketAddr,
    remote: RemoteOptions,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Meter, BenchError> {
    let links = OwnLinks::new(Idle::Adaptive)?;
    let sender = links.sender(to, remote)?;
    batches::send(links, sender, OwnLinks::turn, prebuilt, count)
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or fails.
pub(super) fn receive(
    listener: &TcpListener,
    remote: RemoteOptions,
    tally: Tally,
) -> Result<Received, BenchError> {
    let links = OwnLinks::new(Idle::Adaptive)?;
    let receiver = links.receiver(listener, remote)?;
    batches::receive(links, receiver, OwnLinks::turn, tally)
}
