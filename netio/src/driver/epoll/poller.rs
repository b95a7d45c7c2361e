//! The epoll instance, and waiting for it.

use std::cell::Cell;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::accept::Listener;
use crate::driver::accept_error::RETRY_AFTER_NS;
use crate::driver::slots::Key;

/// Events that one poll takes; the rest waits in the kernel, in turn.
const EVENTS_MAX: usize = 256;

/// What a connection is registered for, once and for all.
const CONNECTION_EVENTS: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::ET);

/// What kind of thing an event is of, above the slot in its data.
const KIND_SHIFT: u32 = 30;
const KIND_CONNECTION: u64 = 0;
const KIND_LISTENER: u64 = 1;
const KIND_BELL: u64 = 2;
const KIND_RETRY: u64 = 3;

/// What an event is of.
pub(super) enum Source {
    Connection(Key),
    Listener(Key),
    /// The bell that makes the epoll descriptor readable for whoever waits for that.
    Bell,
    /// It is time to accept again.
    Retry,
}

pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
    bell: OwnedFd,
    rung: Cell<bool>,
    /// Tells when to accept again. It is there from the start, because when it is needed, no
    /// descriptor is left for it.
    retry: OwnedFd,
    watched: Option<OwnedFd>,
    woken: bool,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let retry = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        for (descriptor, kind) in [(&bell, KIND_BELL), (&retry, KIND_RETRY)] {
            let data = EventData::new_u64(kind << KIND_SHIFT);
            epoll::add(&epoll, descriptor, data, EventFlags::IN)?;
        }
        Ok(Self {
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            bell,
            rung: Cell::new(false),
            retry,
            watched: None,
            woken: false,
        })
    }

    pub(super) fn add_connection(&self, key: Key, stream: &TcpStream) -> io::Result<()> {
        let data = data(KIND_CONNECTION, key);
        Ok(epoll::add(&self.epoll, stream, data, CONNECTION_EVENTS)?)
    }

    pub(super) fn add_listener(&self, key: Key, listener: &TcpListener) -> io::Result<()> {
        let data = data(KIND_LISTENER, key);
        Ok(epoll::add(&self.epoll, listener, data, EventFlags::IN)?)
    }

    pub(super) fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Looks away from a listener for a while.
    pub(super) fn delay(&self, key: Key, listener: &mut Listener) -> io::Result<()> {
        let data = data(KIND_LISTENER, key);
        epoll::modify(&self.epoll, &listener.socket, data, EventFlags::empty())?;
        listener.delayed = true;
        self.set_retry(RETRY_AFTER_NS.into())
    }

    /// Looks at the listeners again that were looked away from.
    pub(super) fn retry<'a>(
        &self,
        listeners: impl Iterator<Item = (Key, &'a mut Listener)>,
    ) -> io::Result<()> {
        self.set_retry(0)?;
        for (key, listener) in listeners.filter(|(_, listener)| listener.delayed) {
            let data = data(KIND_LISTENER, key);
            epoll::modify(&self.epoll, &listener.socket, data, EventFlags::IN)?;
            listener.delayed = false;
        }
        Ok(())
    }

    pub(super) fn watch(&mut self, descriptor: OwnedFd) -> io::Result<()> {
        if self.watched.is_some() {
            return Err(io::Error::other("a driver watches one descriptor at most"));
        }
        self.watched = Some(descriptor);
        Ok(())
    }

    /// Whether the last wait found the watched descriptor readable; once.
    pub(super) fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.woken)
    }

    /// Takes the events that are there, and returns how many.
    pub(super) fn collect(&mut self) -> io::Result<usize> {
        self.silence()?;
        self.events.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, spare, Some(&Timespec::default())) {
            Ok(count) => Ok(count),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// One of the events of the last collection.
    pub(super) fn event(&self, index: usize) -> (Source, EventFlags) {
        let Event { flags, data, .. } = self.events[index];
        let data = data.u64();
        let key = Key {
            slot: (data & ((1 << KIND_SHIFT) - 1)) as u32,
            generation: (data >> 32) as u32,
        };
        let source = match (data >> KIND_SHIFT) & 3 {
            KIND_CONNECTION => Source::Connection(key),
            KIND_LISTENER => Source::Listener(key),
            KIND_BELL => Source::Bell,
            _ => Source::Retry,
        };
        (source, flags)
    }

    /// Sleeps until there are events, the watched descriptor is readable, or the time is over.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // More than the kernel can count is for ever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let epoll = PollFd::new(&self.epoll, PollFlags::IN);
        let waited = match &self.watched {
            None => poll(&mut [epoll], timeout.as_ref()),
            Some(watched) => {
                let mut both = [epoll, PollFd::new(watched, PollFlags::IN)];
                let waited = poll(&mut both, timeout.as_ref());
                self.woken |= waited.is_ok() && !both[1].revents().is_empty();
                waited
            }
        };
        match waited {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the epoll descriptor readable until the next collection.
    pub(super) fn ring(&self) {
        if !self.rung.replace(true) {
            // It fails only where the count is at its end, and then it is readable.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn silence(&self) -> io::Result<()> {
        if self.rung.replace(false) {
            rustix::io::read(&self.bell, &mut [0; 8])?;
        }
        Ok(())
    }

    /// Sets the timer; 0 stops it, and makes it unreadable.
    fn set_retry(&self, after_ns: i64) -> io::Result<()> {
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: 0,
                tv_nsec: after_ns,
            },
        };
        timerfd_settime(&self.retry, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

fn data(kind: u64, key: Key) -> EventData {
    debug_assert!(key.slot < 1 << KIND_SHIFT, "more sockets than descriptors");
    EventData::new_u64(u64::from(key.generation) << 32 | kind << KIND_SHIFT | u64::from(key.slot))
}
