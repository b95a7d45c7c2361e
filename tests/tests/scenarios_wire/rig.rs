//! What all scenarios take: connections, rows, and what arrived of them.

use std::thread;
use std::time::Instant;

use ringway::batch::{Payload, Row};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway_tests::conformance::check;
use ringway_tests::conformance::elements::Numbers;
use ringway_tests::conformance::subjects::RemoteEdge;
use ringway_tests::sockets::pair;
use ringway_tests::within::LONG;

/// Plays a scenario over each driver and in each form of the wire.
pub(crate) fn on_all(scenario: impl Fn(&RemoteEdge)) {
    for edge in RemoteEdge::all() {
        check(edge, &scenario);
    }
}

/// The same for a scenario that mostly waits.
pub(crate) fn on_all_at_once(scenario: impl Fn(&RemoteEdge) + Sync) {
    thread::scope(|all| {
        for edge in RemoteEdge::all() {
            all.spawn(|| check(edge, &scenario));
        }
    });
}

/// An edge over a connection with the buffers that the kernel gives.
pub(crate) fn open(
    edge: &RemoteEdge,
    options: &EdgeOptions,
) -> (Sender<Numbers>, Receiver<Numbers>) {
    let (out, back) = pair();
    (edge.sender(out, options), edge.receiver(back, options))
}

pub(crate) fn rows(values: impl IntoIterator<Item = i64>) -> StreamElement<Numbers> {
    StreamElement::Data(values.into_iter().map(Row::untimed).collect())
}

pub(crate) fn values(rows: Numbers) -> impl Iterator<Item = i64> {
    rows.into_vec().into_iter().map(|row| row.value)
}

/// All rows up to the end, and how it ended.
pub(crate) fn all_rows(receiver: &mut Receiver<Numbers>) -> (Vec<i64>, Ending) {
    let mut all = Vec::new();
    let ending = each_until_the_end(receiver, |element| match element {
        StreamElement::Data(rows) => all.extend(values(rows)),
        other => panic!("rows, not {other:?}"),
    });
    (all, ending)
}

/// Takes all elements up to the end, and returns how it ended.
pub(crate) fn each_until_the_end<B: Payload>(
    receiver: &mut Receiver<B>,
    mut each: impl FnMut(StreamElement<B>),
) -> Ending {
    let since = Instant::now();
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(element) => each(element),
            Popped::Ended(ending) => return ending,
            Popped::Empty => panic!("it hangs for {:?}", since.elapsed()),
        }
    }
}
