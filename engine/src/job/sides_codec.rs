//! How the inputs of an operator with two go from one process to another: each stream carries
//! batches of one side only.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::batch::{Either, Payload};
use crate::batcher::BatchError;
use crate::wire::PayloadCodec;

/// The codec of a stream that has become the left input of an operator with two.
pub(super) struct LeftCodec<A> {
    codec: Arc<dyn PayloadCodec<A>>,
}

/// The codec of a stream that has become the right input of an operator with two.
pub(super) struct RightCodec<B> {
    codec: Arc<dyn PayloadCodec<B>>,
}

impl<A> LeftCodec<A> {
    pub(super) fn new(codec: Arc<dyn PayloadCodec<A>>) -> Self {
        Self { codec }
    }
}

impl<B> RightCodec<B> {
    pub(super) fn new(codec: Arc<dyn PayloadCodec<B>>) -> Self {
        Self { codec }
    }
}

impl<A: Payload, B: Payload> PayloadCodec<Either<A, B>> for LeftCodec<A> {
    fn schema(&self) -> Option<SchemaRef> {
        self.codec.schema()
    }

    fn encode(&self, batch: Either<A, B>) -> Result<RecordBatch, BatchError> {
        match batch {
            Either::Left(batch) => self.codec.encode(batch),
            Either::Right(_) => unreachable!("the stream is the left input"),
        }
    }

    fn decode(&self, batch: RecordBatch) -> Result<Either<A, B>, BatchError> {
        self.codec.decode(batch).map(Either::Left)
    }
}

impl<A: Payload, B: Payload> PayloadCodec<Either<A, B>> for RightCodec<B> {
    fn schema(&self) -> Option<SchemaRef> {
        self.codec.schema()
    }

    fn encode(&self, batch: Either<A, B>) -> Result<RecordBatch, BatchError> {
        match batch {
            Either::Right(batch) => self.codec.encode(batch),
            Either::Left(_) => unreachable!("the stream is the right input"),
        }
    }

    fn decode(&self, batch: RecordBatch) -> Result<Either<A, B>, BatchError> {
        self.codec.decode(batch).map(Either::Right)
    }
}
