//! The receiving half of a bridge.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::Payload;
use crate::data_plane::{AcceptError, DataPlane, ListenError, ListenOptions, Listener};
use crate::edge::{Bell, Popped, Receiver};
use crate::wire::{PayloadCodec, Wired};

use super::Counters;

/// Receives a stream that a [`NetworkSink`](super::NetworkSink), or any other peer that speaks
/// the wire, sends.
pub struct NetworkSource<B: Payload> {
    plane: DataPlane,
    options: ListenOptions,
    codec: Arc<dyn PayloadCodec<B>>,
    state: State<B>,
}

enum State<B: Payload> {
    Closed,
    Listening(Listener<B>),
    Open(Receiver<B>),
}

/// Why a source was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It does not listen: call [`NetworkSource::prepare_listen`] first.
    #[error("the source does not listen: call prepare_listen first")]
    NotListening,
    /// No sender came; the text says why.
    #[error("{0}")]
    Accept(#[from] AcceptError),
}

impl<B: Wired> NetworkSource<B> {
    /// A source that does not listen yet.
    pub fn new(plane: DataPlane, options: ListenOptions) -> Self {
        Self::with_codec(plane, options, B::codec())
    }
}

impl<B: Payload> NetworkSource<B> {
    /// As [`NetworkSource::new`], with an explicit codec.
    pub fn with_codec(
        plane: DataPlane,
        options: ListenOptions,
        codec: Arc<dyn PayloadCodec<B>>,
    ) -> Self {
        Self {
            plane,
            options,
            codec,
            state: State::Closed,
        }
    }

    /// Listens, and returns the port: a sender can connect from here on. Called again, it
    /// listens anew, and gives up what was there.
    ///
    /// # Errors
    /// [`ListenError`] says with each case what to do.
    pub fn prepare_listen(&mut self) -> Result<u16, ListenError> {
        self.state = State::Closed;
        let (options, codec) = (self.options.clone(), Arc::clone(&self.codec));
        let listener = self.plane.listen_with(options, Bell::thread(), codec)?;
        let port = listener.port();
        self.state = State::Listening(listener);
        Ok(port)
    }

    /// Waits for its sender, at most for `timeout`, or without limit. A source that is open
    /// stays as it is.
    ///
    /// # Errors
    /// See [`OpenError`]: after a timeout it still listens.
    pub fn open(&mut self, timeout: Option<Duration>) -> Result<(), OpenError> {
        let receiver = match &self.state {
            State::Open(_) => return Ok(()),
            State::Closed => return Err(OpenError::NotListening),
            State::Listening(listener) => match timeout {
                Some(timeout) => listener.accept_timeout(timeout)?,
                None => listener.accept()?,
            },
        };
        self.state = State::Open(receiver);
        Ok(())
    }

    /// As [`NetworkSource::open`]; the task sleeps until its sender is there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_async(&mut self) -> Result<(), OpenError> {
        let receiver = match &self.state {
            State::Open(_) => return Ok(()),
            State::Closed => return Err(OpenError::NotListening),
            State::Listening(listener) => listener.accept_async().await?,
        };
        self.state = State::Open(receiver);
        Ok(())
    }

    /// The next element, or how the stream ended; waits for it. `Empty` where the source is
    /// not open, or an unaligned barrier waits in [`Receiver::poll_priority`].
    pub fn produce(&mut self) -> Popped<B> {
        self.receiver().map_or(Popped::Empty, Receiver::pop)
    }

    /// The next element, or how the stream ended, if it is there now.
    pub fn try_produce(&mut self) -> Popped<B> {
        self.receiver().map_or(Popped::Empty, Receiver::try_pop)
    }

    /// As [`NetworkSource::produce`]; the task sleeps until there is something. Dropping the
    /// future loses nothing.
    pub async fn produce_async(&mut self) -> Popped<B> {
        match self.receiver() {
            Some(receiver) => receiver.pop_async().await,
            None => Popped::Empty,
        }
    }

    /// Wants no more: the sender is told, and that is no failure.
    pub fn cancel(self) {
        if let State::Open(receiver) = self.state {
            receiver.close();
        }
    }

    /// What has gone through; nothing before it is open.
    pub fn counters(&self) -> Option<Counters> {
        match &self.state {
            State::Open(receiver) => Some(Counters::of(
                receiver.transport(),
                None,
                receiver.remote_stats(),
            )),
            State::Closed | State::Listening(_) => None,
        }
    }

    /// The half of the edge itself, for what has no call here; nothing before it is open.
    pub fn receiver(&mut self) -> Option<&mut Receiver<B>> {
        match &mut self.state {
            State::Open(receiver) => Some(receiver),
            State::Closed | State::Listening(_) => None,
        }
    }
}

impl<B: Payload> fmt::Debug for NetworkSource<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Closed => "closed",
            State::Listening(_) => "listening",
            State::Open(_) => "open",
        };
        f.debug_struct("NetworkSource")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
