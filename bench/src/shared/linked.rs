//! Ours: the link, whose ends may sleep.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ringway_shm::Bell;
use ringway_shm::link::{ClaimError, Consumer, Incoming, LinkConfig, Outgoing, PopError, Producer};

use crate::backoff::Backoff;
use crate::edge::socket::Idle;
use crate::error::BenchError;

use super::meeting::{pass, take};
use super::{MEMORY_BYTES, MESSAGES_MAX, WayIn, WayOut, published_together};

/// How long an idle thread spins before it sleeps, as a worker does.
const SPIN: Duration = Duration::from_micros(50);

/// A parked party that is not woken for so long has been forgotten.
const WAKE_MAX: Duration = Duration::from_secs(20);

/// The segment of a peer is of the size of our own.
const SEGMENT_BYTES_MAX: usize = 4 * MEMORY_BYTES;

/// Messages are of one kind.
const KIND: u32 = 1;

/// The end that writes.
pub(crate) struct LinkIn {
    producer: Producer,
    together: u64,
    unpublished: u64,
}

/// The end that reads.
pub(crate) struct LinkOut {
    consumer: Consumer,
    bell: Bell,
    idle: Idle,
    together: u64,
    untold: u64,
    backoff: Backoff,
    looks: u32,
    idle_since: Option<Instant>,
}

/// The end that writes to whoever is at the other side of `stream`.
///
/// # Errors
/// When there is no memory, or the peer is gone.
pub(crate) fn link_in(
    stream: &UnixStream,
    bell: &Bell,
    message_bytes: usize,
) -> Result<LinkIn, BenchError> {
    let config = LinkConfig {
        arena_bytes: MEMORY_BYTES,
        messages_max: MESSAGES_MAX,
        ..LinkConfig::default()
    };
    let half = Outgoing::new(&config, bell)?;
    pass(stream, &half.descriptors())?;
    Ok(LinkIn {
        producer: half.meet(take(stream)?)?,
        together: published_together(message_bytes),
        unpublished: 0,
    })
}

/// The end that reads what comes from the other side of `stream`.
///
/// # Errors
/// As for [`link_in`].
pub(crate) fn link_out(
    stream: &UnixStream,
    bell: &Bell,
    message_bytes: usize,
    idle: Idle,
) -> Result<LinkOut, BenchError> {
    let half = Incoming::new(bell)?;
    pass(stream, &half.descriptors())?;
    Ok(LinkOut {
        consumer: half.meet(take(stream)?, SEGMENT_BYTES_MAX)?,
        bell: bell.clone(),
        idle,
        together: published_together(message_bytes),
        untold: 0,
        backoff: Backoff::light(),
        looks: 0,
        idle_since: None,
    })
}

impl WayIn for LinkIn {
    #[inline]
    fn push(&mut self, message: &[u8]) -> Result<(), BenchError> {
        let mut backoff = Backoff::light();
        loop {
            match self.producer.try_claim(message.len()) {
                Ok(mut claim) => {
                    claim.append(message);
                    claim.commit(KIND, message.len());
                    break;
                }
                Err(ClaimError::Full { .. }) => backoff.pause(),
                Err(error) => return Err(error.into()),
            }
        }
        self.unpublished += 1;
        if self.unpublished >= self.together {
            self.publish();
        }
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {
        self.unpublished = 0;
        self.producer.flush();
    }
}

impl LinkOut {
    /// Looks without letting more and more time pass in between.
    pub(crate) fn impatient(mut self) -> Self {
        self.backoff = Backoff::spin();
        self
    }

    fn tell(&mut self) {
        self.untold = 0;
        self.consumer.flush();
    }

    fn park(&mut self) -> Result<(), BenchError> {
        self.idle_since = None;
        self.bell.arm();
        if self.consumer.is_ready() {
            self.bell.disarm();
            return Ok(());
        }
        match self.bell.park(Some(WAKE_MAX)) {
            true => Ok(()),
            false => Err(BenchError::new("a parked consumer was not woken")),
        }
    }
}

impl WayOut for LinkOut {
    #[inline]
    fn pop(&mut self, read: impl FnOnce(&[u8])) -> Result<bool, BenchError> {
        match self.consumer.try_pop() {
            Ok(message) => read(message.bytes()),
            Err(PopError::Empty) => {
                if self.untold > 0 {
                    self.tell();
                }
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.untold += 1;
        if self.untold >= self.together {
            self.tell();
        }
        self.backoff.reset();
        self.looks = 0;
        self.idle_since = None;
        Ok(true)
    }

    #[inline]
    fn wait(&mut self) -> Result<(), BenchError> {
        match self.idle {
            Idle::Spin => self.backoff.pause(),
            Idle::Park => return self.park(),
            Idle::Adaptive => {
                std::hint::spin_loop();
                self.looks += 1;
                if self.looks.is_multiple_of(16)
                    && self.idle_since.get_or_insert_with(Instant::now).elapsed() >= SPIN
                {
                    return self.park();
                }
            }
        }
        Ok(())
    }
}
