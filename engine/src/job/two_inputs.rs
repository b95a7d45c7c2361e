//! How streams become the inputs of an operator that has two.

use std::sync::Arc;

use crate::batch::{Either, Payload};
use crate::operator::{Operator, Subtask};
use crate::operators::{ToLeft, ToRight};
use crate::wire::PayloadCodec;

use super::graph::{Exchange, Graph, NodeId, Port, StreamEdge};
use super::node::OperatorNode;
use super::payload::Codec;
use super::sides_codec::{LeftCodec, RightCodec};

impl Graph {
    /// Connects an output of `from`, which gives `A`, to the left input of `to`, which takes
    /// `Either<A, B>`. `exchange` is one of `A`.
    ///
    /// A node that makes batches left ones is put between, with as many subtasks as `from` has:
    /// so it shares the chain of that, and rows keep their order. Say the parallelism of `from`
    /// before. An operator with two inputs needs a stream to each. Returns the stream from that
    /// node to `to`.
    ///
    /// # Panics
    /// When the payload types differ, or an end has no such port, as for [`Graph::connect`].
    pub fn connect_left<A: Payload, B: Payload>(
        &mut self,
        from: NodeId,
        port: Port,
        to: NodeId,
        exchange: Exchange,
    ) -> &mut StreamEdge {
        let exchange = exchange.of_left::<A, B>();
        let codec = |codec: &Codec| {
            let codec = LeftCodec::new(codec.of::<A>());
            Arc::new(codec) as Arc<dyn PayloadCodec<Either<A, B>>>
        };
        self.connect_side((from, port), "left", ToLeft, codec, to, exchange)
    }

    /// Connects an output of `from`, which gives `B`, to the right input of `to`, as
    /// [`Graph::connect_left`] does to the left one.
    ///
    /// # Panics
    /// As for `connect_left`.
    pub fn connect_right<A: Payload, B: Payload>(
        &mut self,
        from: NodeId,
        port: Port,
        to: NodeId,
        exchange: Exchange,
    ) -> &mut StreamEdge {
        let exchange = exchange.of_right::<A, B>();
        let codec = |codec: &Codec| {
            let codec = RightCodec::new(codec.of::<B>());
            Arc::new(codec) as Arc<dyn PayloadCodec<Either<A, B>>>
        };
        self.connect_side((from, port), "right", ToRight, codec, to, exchange)
    }

    fn connect_side<S, E, Op>(
        &mut self,
        (from, port): (NodeId, Port),
        side: &str,
        operator: Op,
        codec: impl FnOnce(&Codec) -> Arc<dyn PayloadCodec<E>>,
        to: NodeId,
        exchange: Exchange,
    ) -> &mut StreamEdge
    where
        S: Payload,
        E: Payload,
        Op: Operator<S, E> + Copy + Sync + 'static,
    {
        let name = format!("{}.{side}", self[to].name);
        let (parallelism, max) = (self[from].parallelism, self[from].factory.parallelism_max());
        let node = OperatorNode::new(Vec::new(), move |_: &Subtask| {
            Ok(Box::new(operator) as Box<dyn Operator<S, E>>)
        });
        let node = self.add(name, node.with_parallelism_max(max));
        self[node].parallelism = parallelism;
        self[node].process = self[from].process;
        self.connect(from, port, node, Exchange::auto::<S>());
        if let Some(said) = self.codec(from, port) {
            self.set_codec(node, Port::Main, codec(&said));
        }
        self.connect(node, Port::Main, to, exchange)
    }
}
