//! iceoryx2: its publish-subscribe, polled.
//!
//! A publisher waits where its subscriber's buffer is full, so that nothing is lost, and has as
//! much room as every other way. Services are found by name, in a folder of the system.

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

use crate::backoff::Backoff;
use crate::error::BenchError;

use super::{WayIn, WayOut, messages_of};

type Service = PortFactory<ipc::Service, [u8], ()>;

/// The services of this process.
pub(crate) struct Services {
    node: Node<ipc::Service>,
}

/// The end that writes.
pub(crate) struct PublisherIn {
    publisher: Publisher<ipc::Service, [u8], ()>,
    _service: Service,
}

/// The end that reads.
pub(crate) struct SubscriberOut {
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    _service: Service,
    backoff: Backoff,
}

impl Services {
    /// # Errors
    /// When the system has no room for them.
    pub(crate) fn new() -> Result<Self, BenchError> {
        set_log_level(LogLevel::Fatal);
        // The harness ends by itself, and its signals are its own.
        let node = NodeBuilder::new()
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<ipc::Service>();
        Ok(Self {
            node: node.map_err(said)?,
        })
    }

    /// The end that writes to the service of this name.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(crate) fn publisher(
        &self,
        name: &str,
        message_bytes: usize,
    ) -> Result<PublisherIn, BenchError> {
        let service = self.service(name, message_bytes)?;
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(message_bytes)
            .max_loaned_samples(1)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create();
        Ok(PublisherIn {
            publisher: publisher.map_err(said)?,
            _service: service,
        })
    }

    /// The end that reads from the service of this name.
    ///
    /// # Errors
    /// As for [`publisher`](Self::publisher).
    pub(crate) fn subscriber(
        &self,
        name: &str,
        message_bytes: usize,
    ) -> Result<SubscriberOut, BenchError> {
        let service = self.service(name, message_bytes)?;
        let subscriber = service.subscriber_builder().create();
        Ok(SubscriberOut {
            subscriber: subscriber.map_err(said)?,
            _service: service,
            backoff: Backoff::light(),
        })
    }

    fn service(&self, name: &str, message_bytes: usize) -> Result<Service, BenchError> {
        let name = ServiceName::new(name).map_err(said)?;
        let service = self.node.service_builder(&name);
        let service = service
            .publish_subscribe::<[u8]>()
            .payload_alignment(Alignment::new(64).unwrap_or(Alignment::ALIGN_8))
            .enable_safe_overflow(false)
            .history_size(0)
            .subscriber_max_buffer_size(messages_of(message_bytes))
            .subscriber_max_borrowed_samples(1)
            .max_publishers(1)
            .max_subscribers(1)
            .max_nodes(2);
        service.open_or_create().map_err(said)
    }
}

impl WayIn for PublisherIn {
    #[inline]
    fn push(&mut self, message: &[u8]) -> Result<(), BenchError> {
        let sample = self.publisher.loan_slice_uninit(message.len());
        let sample = sample.map_err(said)?.write_from_slice(message);
        sample.send().map_err(said)?;
        Ok(())
    }

    #[inline]
    fn publish(&mut self) {}
}

impl SubscriberOut {
    /// Looks without letting more and more time pass in between.
    pub(crate) fn impatient(mut self) -> Self {
        self.backoff = Backoff::spin();
        self
    }
}

impl WayOut for SubscriberOut {
    #[inline]
    fn pop(&mut self, read: impl FnOnce(&[u8])) -> Result<bool, BenchError> {
        let Some(sample) = self.subscriber.receive().map_err(said)? else {
            return Ok(false);
        };
        read(sample.payload());
        self.backoff.reset();
        Ok(true)
    }

    #[inline]
    fn wait(&mut self) -> Result<(), BenchError> {
        self.backoff.pause();
        Ok(())
    }
}

#[cold]
fn said(error: impl std::fmt::Debug) -> BenchError {
    BenchError::new(format!("iceoryx2: {error:?}"))
}
