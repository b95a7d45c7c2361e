//! Payload types behind one face, so that a graph can hold streams of any of them.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use ringway_netio::driver::Socket;
use ringway_shm::Bell;

use crate::batch::Payload;
use crate::edge::remote::{
    self, EdgePort, Greeting, LinksGone, LinksHandle, RemoteOptions, RemoteParts,
};
use crate::edge::{EdgeOptions, Receiver, Sender, local};
use crate::gate::InputGate;
use crate::operator::Subtask;
use crate::output::{Output, Partitioner};
use crate::task::{Chain, GateTask, OutputStage, SideOutlet, Stage, Task, TypedSideOutlet};
use crate::wire::{Columns, PayloadCodec};

use super::remote::{RemoteError, WantedHalf};

/// Something typed by a payload type, without the type: a sender, a receiver, a stage, a
/// partitioner. What is put in under a [`PayloadType`] is taken out under the same.
pub struct Erased(Box<dyn Any + Send>);

impl Erased {
    /// Hides the type of `value`.
    pub fn new<T: Send + 'static>(value: T) -> Self {
        Self(Box::new(value))
    }

    /// The value.
    ///
    /// # Panics
    /// When it is of another type: the graph checks payload types when nodes are connected.
    pub fn take<T: 'static>(self) -> T {
        // Invariant: the graph compares payload types before it connects two nodes.
        *self
            .0
            .downcast()
            .expect("payload types are checked when nodes are connected")
    }
}

/// Puts a sender on its connection. Dropped without that, the sender has failed.
pub(super) type ConnectLater = Box<dyn FnOnce(Socket) -> Result<Greeting, LinksGone> + Send>;

/// A `PayloadCodec<B>` without the type: how batches of a stream go to other processes.
#[derive(Clone)]
pub struct Codec {
    codec: Arc<dyn Any + Send + Sync>,
    schema: Option<SchemaRef>,
}

impl Codec {
    /// Hides the type of `codec`.
    pub fn new<B: Payload>(codec: Arc<dyn PayloadCodec<B>>) -> Self {
        Self {
            schema: codec.schema(),
            codec: Arc::new(codec),
        }
    }

    /// The codec of a type that needs none said, if `payload` is one: record batches.
    pub(super) fn of_record_batches(payload: PayloadType) -> Option<Self> {
        let batches = PayloadType::of::<RecordBatch>() == payload;
        batches.then(|| Self::new::<RecordBatch>(Arc::new(Columns::any())))
    }

    /// The codec.
    ///
    /// # Panics
    /// When it is of another type: the graph checks payload types when codecs are given.
    pub fn of<B: Payload>(&self) -> Arc<dyn PayloadCodec<B>> {
        let codec = self.codec.downcast_ref::<Arc<dyn PayloadCodec<B>>>();
        // Invariant: the graph compares the payload type before it takes a codec.
        codec.expect("codecs are of their stream's type").clone()
    }

    /// The schema of what goes over the wire, where it is fixed.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }
}

/// A payload type, as a value.
#[derive(Clone, Copy)]
pub struct PayloadType(&'static dyn PayloadOps);

impl PayloadType {
    /// The payload type `B`.
    pub fn of<B: Payload>() -> Self {
        Self(&OpsOf::<B>(PhantomData))
    }

    /// Its name in Rust, for people.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Opens a local edge. Returns a `Sender<B>` and a `Receiver<B>`.
    pub fn open_edge(self, options: EdgeOptions, from: Bell, to: Bell) -> (Erased, Erased) {
        self.0.open_edge(options, from, to)
    }

    /// The `Receiver<B>` of an edge whose sender will connect to `port`.
    pub(super) fn receive_at(
        self,
        half: &WantedHalf,
        port: &EdgePort,
        links: &LinksHandle,
    ) -> Result<Erased, RemoteError> {
        self.0.receive_at(half, port, links)
    }

    /// The `Sender<B>` of an edge to `peer`, and what puts it on its connection.
    pub(super) fn send_later(
        self,
        half: &WantedHalf,
        peer: String,
        remote: RemoteOptions,
        links: &LinksHandle,
    ) -> (Erased, ConnectLater) {
        self.0.send_later(half, peer, remote, links)
    }

    /// The end of a chain: an output with these edges, as a `Box<dyn Stage<B>>`.
    pub(super) fn output_stage(self, groups: Vec<ErasedGroup>, position: usize) -> Erased {
        self.0.output_stage(groups, position)
    }

    /// The way out of a side output; without a group nothing consumes it.
    pub(super) fn side_outlet(self, index: usize, groups: Vec<ErasedGroup>) -> Box<dyn SideOutlet> {
        self.0.side_outlet(index, groups)
    }

    /// A task that feeds a chain, given as its first `Box<dyn Stage<B>>`, from these edges.
    pub(super) fn gate_task(
        self,
        receivers: Vec<Erased>,
        stage: Erased,
        subtasks: Vec<Subtask>,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Box<dyn Task> {
        self.0.gate_task(receivers, stage, subtasks, sides)
    }
}

impl PartialEq for PayloadType {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl fmt::Debug for PayloadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A `Box<dyn Partitioner<B>>` with the `Sender<B>`s to the subtasks of one consumer.
pub(super) struct ErasedGroup {
    pub(super) partitioner: Erased,
    pub(super) senders: Vec<Erased>,
}

trait PayloadOps: Sync {
    fn id(&self) -> TypeId;
    fn name(&self) -> &'static str;
    fn open_edge(&self, options: EdgeOptions, from: Bell, to: Bell) -> (Erased, Erased);
    fn receive_at(
        &self,
        half: &WantedHalf,
        port: &EdgePort,
        links: &LinksHandle,
    ) -> Result<Erased, RemoteError>;
    fn send_later(
        &self,
        half: &WantedHalf,
        peer: String,
        remote: RemoteOptions,
        links: &LinksHandle,
    ) -> (Erased, ConnectLater);
    fn output_stage(&self, groups: Vec<ErasedGroup>, position: usize) -> Erased;
    fn side_outlet(&self, index: usize, groups: Vec<ErasedGroup>) -> Box<dyn SideOutlet>;
    fn gate_task(
        &self,
        receivers: Vec<Erased>,
        stage: Erased,
        subtasks: Vec<Subtask>,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Box<dyn Task>;
}

struct OpsOf<B>(PhantomData<fn() -> B>);

impl<B: Payload> PayloadOps for OpsOf<B> {
    fn id(&self) -> TypeId {
        TypeId::of::<B>()
    }

    fn name(&self) -> &'static str {
        std::any::type_name::<B>()
    }

    fn open_edge(&self, options: EdgeOptions, from: Bell, to: Bell) -> (Erased, Erased) {
        let (sender, receiver) = local::open::<B>(options, from, to);
        (Erased::new(sender), Erased::new(receiver))
    }

    fn receive_at(
        &self,
        half: &WantedHalf,
        port: &EdgePort,
        links: &LinksHandle,
    ) -> Result<Erased, RemoteError> {
        let (codec, bell) = (half.codec.of::<B>(), half.bell.clone());
        let sharing = half.transport.sharing();
        let sharing = sharing.map_err(|error| RemoteError(error.to_string()))?;
        let (edge, options) = (half.edge, &half.options);
        let receiver = port.expect_sharing::<B>(edge, options, codec, bell, links, sharing);
        let receiver = receiver.map_err(|error| RemoteError(error.to_string()))?;
        Ok(Erased::new(receiver))
    }

    fn send_later(
        &self,
        half: &WantedHalf,
        peer: String,
        remote: RemoteOptions,
        links: &LinksHandle,
    ) -> (Erased, ConnectLater) {
        let parts = RemoteParts {
            edge: half.options.clone(),
            remote,
            codec: half.codec.of::<B>(),
            peer,
            bell: half.bell.clone(),
        };
        let (sender, seat) = remote::send_later(links, parts);
        (Erased::new(sender), Box::new(|socket| seat.connect(socket)))
    }

    fn output_stage(&self, groups: Vec<ErasedGroup>, position: usize) -> Erased {
        let stage: Box<dyn Stage<B>> = Box::new(OutputStage::new(output::<B>(groups), position));
        Erased::new(stage)
    }

    fn side_outlet(&self, index: usize, groups: Vec<ErasedGroup>) -> Box<dyn SideOutlet> {
        let output = (!groups.is_empty()).then(|| output::<B>(groups));
        Box::new(TypedSideOutlet::new(index, output))
    }

    fn gate_task(
        &self,
        receivers: Vec<Erased>,
        stage: Erased,
        subtasks: Vec<Subtask>,
        sides: Vec<Box<dyn SideOutlet>>,
    ) -> Box<dyn Task> {
        let receivers = receivers
            .into_iter()
            .map(Erased::take::<Receiver<B>>)
            .collect();
        let stage = stage.take::<Box<dyn Stage<B>>>();
        Box::new(GateTask::new(
            InputGate::new(receivers),
            Chain::new(stage, subtasks, sides),
        ))
    }
}

fn output<B: Payload>(groups: Vec<ErasedGroup>) -> Output<B> {
    let mut output = Output::new();
    for group in groups {
        let partitioner = group.partitioner.take::<Box<dyn Partitioner<B>>>();
        let senders = group
            .senders
            .into_iter()
            .map(Erased::take::<Sender<B>>)
            .collect();
        output.add_group(partitioner, senders);
    }
    output
}
