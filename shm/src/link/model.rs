//! Two halves of a link in one process, for the model checker.

use crate::bell::Bell;
use crate::link::bounds::Bounds;
use crate::link::side::{ConsumerSide, ProducerSide};
use crate::link::{Consumer, Producer};
use crate::sync::Arc;

impl Consumer {
    /// How many slots were published when what stands beside the tail was written, as of the last
    /// time that the tail had moved.
    pub fn model_newest_tail(&self) -> u64 {
        self.newest >> 32
    }
}

/// A link with so many slots and bytes, nothing of which is kept for small messages. The bells
/// are [`Bell::model_shared`].
pub fn model(
    slots: usize,
    arena_bytes: usize,
    producer_bell: &Bell,
    consumer_bell: &Bell,
) -> (Producer, Consumer) {
    let bounds = Bounds {
        messages_max: slots as u64 - 1,
        reserve: 0,
        claim_max: arena_bytes / 4,
    };
    let theirs = ProducerSide::new(slots, arena_bytes);
    let ours = ConsumerSide::new();
    let producer = Producer::new(
        theirs.clone(),
        ours.clone(),
        bounds,
        consumer_bell.model_doorbell(),
        producer_bell.clone(),
    );
    let consumer = Consumer::new(
        Arc::new(theirs),
        ours,
        bounds,
        producer_bell.model_doorbell(),
        consumer_bell.clone(),
    );
    (producer, consumer)
}
