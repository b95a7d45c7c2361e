//! Aeron's IPC, polled: a publication that one process writes to and another reads from.
//!
//! The process that sends has the media driver, whose thread only looks after who comes and goes,
//! and sleeps in between. A message that is longer than a fragment is put together again by the
//! reader, which copies it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rusteron_media_driver::bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED;
use rusteron_media_driver::testing::EmbeddedDriver;
use rusteron_media_driver::{
    Aeron, AeronExclusivePublication, AeronFragmentClosureAssembler, AeronHeader,
    AeronSubscription, Handlers,
};

use crate::backoff::Backoff;
use crate::error::BenchError;

use super::{WayIn, WayOut};

/// Terms that have room for a message of 1 MiB, and fragments as long as they may be.
const CHANNEL: &std::ffi::CStr = c"aeron:ipc?term-length=16777216|mtu=65504";

/// Fragments that are looked at together.
const FRAGMENTS: usize = 64;

/// How long to wait for who is to come.
const COME_MAX: Duration = Duration::from_secs(10);

/// The media driver, in the process that sends.
pub(crate) struct Driver {
    client: Client,
    _driver: EmbeddedDriver,
}

/// A process that uses it.
pub(crate) struct Client(Aeron);

/// The end that writes.
pub(crate) struct PublicationIn(AeronExclusivePublication);

/// The end that reads.
pub(crate) struct SubscriptionOut {
    subscription: AeronSubscription,
    assembler: AeronFragmentClosureAssembler,
    backoff: Backoff,
}

impl Driver {
    /// Starts it, and tells the process at the other side of `stream` where it is.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub(crate) fn start(stream: &mut UnixStream) -> Result<Self, BenchError> {
        let driver = EmbeddedDriver::launch_with(|context| {
            context.set_threading_mode(AERON_THREADING_MODE_SHARED)?;
            Ok(())
        })?;
        let client = Client(Aeron::connect_dir(driver.dir())?);
        let folder = driver.dir().as_bytes();
        stream.write_all(&u32::try_from(folder.len())?.to_le_bytes())?;
        stream.write_all(folder)?;
        Ok(Self {
            client,
            _driver: driver,
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

impl Client {
    /// Comes to the driver that the process at the other side of `stream` has.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) fn join(stream: &mut UnixStream) -> Result<Self, BenchError> {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut folder = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut folder)?;
        Ok(Self(Aeron::connect_dir(&String::from_utf8(folder)?)?))
    }

    /// The end that writes to the stream of this number.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) fn publication(&self, number: i32) -> Result<PublicationIn, BenchError> {
        let publication = self
            .0
            .add_exclusive_publication(CHANNEL, number, COME_MAX)?;
        Ok(PublicationIn(publication))
    }

    /// The end that reads from the stream of this number.
    ///
    /// # Errors
    /// As for [`publication`](Self::publication).
    pub(crate) fn subscription(&self, number: i32) -> Result<SubscriptionOut, BenchError> {
        let (come, gone) = (Handlers::NONE, Handlers::NONE);
        Ok(SubscriptionOut {
            subscription: self
                .0
                .add_subscription(CHANNEL, number, come, gone, COME_MAX)?,
            assembler: AeronFragmentClosureAssembler::new()?,
            backoff: Backoff::light(),
        })
    }
}

impl PublicationIn {
    /// Waits until somebody reads it.
    pub(crate) fn connected(self) -> Self {
        let mut backoff = Backoff::light();
        while !self.0.is_connected() {
            backoff.pause();
        }
        self
    }
}

impl WayIn for PublicationIn {
    #[inline]
    fn push(&mut self, message: &[u8]) -> Result<(), BenchError> {
        let mut backoff = Backoff::light();
        loop {
            match self.0.offer(message) {
                Ok(_) => return Ok(()),
                Err(error) if error.is_retryable() => backoff.pause(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[inline]
    fn publish(&mut self) {}
}

impl SubscriptionOut {
    /// Looks without letting more and more time pass in between.
    pub(crate) fn impatient(mut self) -> Self {
        self.backoff = Backoff::spin();
        self
    }

    /// Lets `read` see all messages of some fragments; false where there were none.
    ///
    /// # Errors
    /// When the way is broken.
    pub(crate) fn pop_some<F: FnMut(&[u8])>(&mut self, mut read: F) -> Result<bool, BenchError> {
        let see = |read: &mut F, message: &[u8], _: AeronHeader| read(message);
        let (from, assembler) = (&self.subscription, &mut self.assembler);
        let seen = assembler.poll(from, &mut read, see, FRAGMENTS)?;
        if seen > 0 {
            self.backoff.reset();
        }
        Ok(seen > 0)
    }
}

impl WayOut for SubscriptionOut {
    #[inline]
    fn pop(&mut self, read: impl FnOnce(&[u8])) -> Result<bool, BenchError> {
        let mut read = Some(read);
        // A message may have several fragments.
        while self.assembler.poll(&self.subscription, &mut read, see, 1)? > 0 {
            if read.is_none() {
                self.backoff.reset();
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    fn wait(&mut self) -> Result<(), BenchError> {
        self.backoff.pause();
        Ok(())
    }
}

fn see<F: FnOnce(&[u8])>(read: &mut Option<F>, message: &[u8], _: AeronHeader) {
    if let Some(read) = read.take() {
        read(message);
    }
}
