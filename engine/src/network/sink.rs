//! The sending half of a bridge.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::Payload;
use crate::data_plane::{ConnectError, ConnectOptions, DataPlane};
use crate::edge::remote::FinishError;
use crate::edge::{Bell, RejectReason, Rejected, Sender};
use crate::element::StreamElement;
use crate::wire::{PayloadCodec, Wired};

use super::Counters;

/// Sends a stream to where a [`NetworkSource`](super::NetworkSource), or any other peer that
/// speaks the wire, listens.
///
/// Dropping it without [`NetworkSink::close`] is a failure of the stream, never its end.
pub struct NetworkSink<B: Payload> {
    plane: DataPlane,
    host: String,
    port: u16,
    options: ConnectOptions,
    codec: Arc<dyn PayloadCodec<B>>,
    sender: Option<Sender<B>>,
}

impl<B: Wired> NetworkSink<B> {
    /// A sink that is not connected yet.
    pub fn new(
        plane: DataPlane,
        host: impl Into<String>,
        port: u16,
        options: ConnectOptions,
    ) -> Self {
        Self::with_codec(plane, host, port, options, B::codec())
    }
}

impl<B: Payload> NetworkSink<B> {
    /// As [`NetworkSink::new`], with an explicit codec.
    pub fn with_codec(
        plane: DataPlane,
        host: impl Into<String>,
        port: u16,
        options: ConnectOptions,
        codec: Arc<dyn PayloadCodec<B>>,
    ) -> Self {
        Self {
            plane,
            host: host.into(),
            port,
            options,
            codec,
            sender: None,
        }
    }

    /// Connects. Blocks until the connection is there, or for as long as the options say. A
    /// sink that is open stays as it is.
    ///
    /// # Errors
    /// [`ConnectError`] says with each case what to do; the sink can be opened again.
    pub fn open(&mut self) -> Result<(), ConnectError> {
        if self.sender.is_none() {
            let (options, codec) = (self.options.clone(), Arc::clone(&self.codec));
            let bell = Bell::thread();
            let sender = self
                .plane
                .connect_with(&self.host, self.port, bell, options, codec)?;
            self.sender = Some(sender);
        }
        Ok(())
    }

    /// Sends an element, waiting for room without limit.
    ///
    /// # Errors
    /// It comes back: [`RejectReason::Closed`] where the peer wants no more,
    /// [`RejectReason::Failed`] where the stream has failed, or the sink is not open.
    pub fn push(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        match &mut self.sender {
            Some(sender) => sender.push(element),
            None => Err(self.not_open(element)),
        }
    }

    /// Sends an element if there is room now.
    ///
    /// # Errors
    /// As [`NetworkSink::push`], and [`RejectReason::Full`]: try again later.
    pub fn try_push(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        match &mut self.sender {
            Some(sender) => sender.try_push(element),
            None => Err(self.not_open(element)),
        }
    }

    /// Sends an element; the task sleeps until there is room. Where the future is dropped
    /// before it is done, the element is dropped with it.
    ///
    /// # Errors
    /// As [`NetworkSink::push`].
    pub async fn push_async(&mut self, element: StreamElement<B>) -> Result<(), Rejected<B>> {
        match &mut self.sender {
            Some(sender) => sender.push_async(element).await,
            None => Err(self.not_open(element)),
        }
    }

    /// Ends the stream, and waits until the peer has all of it, at most for `timeout`.
    ///
    /// # Errors
    /// [`FinishError`]: the peer went, or did not take everything in that time; or the sink is
    /// not open.
    pub fn close(mut self, timeout: Duration) -> Result<(), FinishError> {
        match self.sender.take() {
            Some(sender) => sender.finish_and_wait(timeout),
            None => Err(FinishError::Rejected(self.reason())),
        }
    }

    /// Cancels the stream: no end. The peer takes what is on the way, then learns of it.
    pub fn cancel(mut self) {
        if let Some(sender) = self.sender.take() {
            sender.cancel();
        }
    }

    /// Fails the stream: no end. The peer takes what is on the way, then learns why.
    pub fn fail(mut self, reason: impl Into<String>) {
        if let Some(sender) = self.sender.take() {
            sender.fail(reason);
        }
    }

    /// What has gone through; nothing before it is open.
    pub fn counters(&self) -> Option<Counters> {
        let sender = self.sender.as_ref()?;
        let metrics = Some(sender.metrics());
        Some(Counters::of(
            sender.transport(),
            metrics,
            sender.remote_stats(),
        ))
    }

    /// The half of the edge itself, for what has no call here; nothing before it is open.
    pub fn sender(&mut self) -> Option<&mut Sender<B>> {
        self.sender.as_mut()
    }

    fn reason(&self) -> RejectReason {
        let edge = format!("{}:{}", self.host, self.port);
        RejectReason::Failed(crate::edge::Failure::peer_failed(
            edge,
            "the sink is not open: call open first",
        ))
    }

    fn not_open(&self, element: StreamElement<B>) -> Rejected<B> {
        Rejected {
            element,
            reason: self.reason(),
        }
    }
}

impl<B: Payload> fmt::Debug for NetworkSink<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkSink")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("is_open", &self.sender.is_some())
            .finish_non_exhaustive()
    }
}
