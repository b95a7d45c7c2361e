//! Each form of an edge.

use arrow::array::RecordBatch;
use futures_util::{SinkExt, StreamExt, stream};
use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions};
use ringway::edge::{Bell, EdgeOptions, Ending, Popped, Receiver, Sender, local};
use ringway::element::StreamElement;
use ringway_tests::block_on::block_on;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::{BEST, BEST_V1, SHARED, SHARED_COPIED};

use crate::Way;
use crate::batches::Input;
use crate::compared::Arrived;

pub(crate) const WAYS: &[Way] = &[
    Way {
        name: "polled",
        go: polled,
    },
    Way {
        name: "blocking",
        go: blocking,
    },
    Way {
        name: "awaited",
        go: awaited,
    },
    Way {
        name: "stream and sink",
        go: streamed,
    },
    Way {
        name: "by name",
        go: by_name,
    },
    Way {
        name: "over a connection",
        go: |input| connected(&*BEST, input),
    },
    Way {
        name: "over a connection, version 1",
        go: |input| connected(&*BEST_V1, input),
    },
    Way {
        name: "over shared memory",
        go: |input| connected(&*SHARED, input),
    },
    Way {
        name: "over shared memory, copied",
        go: |input| connected(&*SHARED_COPIED, input),
    },
];

fn open() -> (Sender<RecordBatch>, Receiver<RecordBatch>) {
    local::pair(EdgeOptions::named("edge"))
}

fn taken(batches: Vec<RecordBatch>, input: &Input) -> Result<Arrived, String> {
    Ok(Arrived::of(batches, input.ids()))
}

fn element(popped: Popped<RecordBatch>) -> Option<RecordBatch> {
    match popped {
        Popped::Element(StreamElement::Data(batch)) => Some(batch),
        _ => None,
    }
}

fn polled(input: &Input) -> Result<Arrived, String> {
    let (mut sender, mut receiver) = open();
    for batch in input.batches.clone() {
        sender
            .try_push(StreamElement::Data(batch))
            .map_err(|error| error.to_string())?;
    }
    taken(
        std::iter::from_fn(|| element(receiver.try_pop())).collect(),
        input,
    )
}

fn blocking(input: &Input) -> Result<Arrived, String> {
    let (mut sender, mut receiver) = open();
    for batch in input.batches.clone() {
        sender
            .push(StreamElement::Data(batch))
            .map_err(|error| error.to_string())?;
    }
    drop(sender);
    taken(
        std::iter::from_fn(|| element(receiver.pop())).collect(),
        input,
    )
}

fn connected(subject: &impl EdgeSubject, input: &Input) -> Result<Arrived, String> {
    let (mut sender, mut receiver) = subject.open(EdgeOptions::named("edge"));
    for batch in input.batches.clone() {
        sender
            .push(StreamElement::Data(batch))
            .map_err(|error| error.to_string())?;
    }
    sender.finish().map_err(|reason| reason.to_string())?;
    let mut batches = Vec::new();
    loop {
        match receiver.pop() {
            Popped::Element(StreamElement::Data(batch)) => batches.push(batch),
            Popped::Ended(Ending::End) => return taken(batches, input),
            other => return Err(format!("{other:?}")),
        }
    }
}

fn awaited(input: &Input) -> Result<Arrived, String> {
    let (mut sender, mut receiver) = open();
    block_on(async {
        for batch in input.batches.clone() {
            let pushed = sender.push_async(StreamElement::Data(batch)).await;
            pushed.map_err(|error| error.to_string())?;
        }
        let mut batches = Vec::new();
        while batches.len() < input.batches.len() {
            batches.extend(element(receiver.pop_async().await));
        }
        taken(batches, input)
    })
}

fn streamed(input: &Input) -> Result<Arrived, String> {
    let (sender, receiver) = open();
    block_on(async {
        let mut sink = sender.into_sink();
        let batches = input.batches.clone().into_iter();
        let mut elements = stream::iter(batches.map(StreamElement::Data).map(Ok));
        sink.send_all(&mut elements)
            .await
            .map_err(|reason| reason.to_string())?;
        sink.close().await.map_err(|reason| reason.to_string())?;
        let elements: Vec<_> = receiver.into_stream().collect().await;
        let batch = |element| match element {
            Ok(StreamElement::Data(batch)) => Ok(batch),
            other => Err(format!("{other:?}")),
        };
        taken(
            elements.into_iter().map(batch).collect::<Result<_, _>>()?,
            input,
        )
    })
}

fn by_name(input: &Input) -> Result<Arrived, String> {
    let plane = DataPlane::new();
    let listener = plane.listen(ListenOptions::new("127.0.0.1", 0), Bell::thread());
    let listener = listener.map_err(|error| error.to_string())?;
    let options = ConnectOptions::default();
    let sender = plane.connect("127.0.0.1", listener.port(), Bell::thread(), options);
    let mut sender: Sender<RecordBatch> = sender.map_err(|error| error.to_string())?;
    for batch in input.batches.clone() {
        sender
            .push(StreamElement::Data(batch))
            .map_err(|error| error.to_string())?;
    }
    drop(sender);
    let mut receiver = listener.accept().map_err(|error| error.to_string())?;
    taken(
        std::iter::from_fn(|| element(receiver.pop())).collect(),
        input,
    )
}
