//! A thousand idle edges over connections cost what they say.
//!
//! Goal: memory follows the traffic, not the size of the graph. Method: resident memory of this
//! process around a thousand edges of which it has both ends. A binary of its own, so that no
//! other test allocates meanwhile. Memory of the kernel is not counted.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ringway::edge::remote::{LinksHandle, RemoteOptions, RemoteParts, receive_over, send_over};
use ringway::edge::{EdgeOptions, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway_tests::sockets::{self, io};
use ringway_tests::usage::resident_bytes;
use ringway_tests::within::{LONG, until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const EDGES: usize = 1_000;

/// What one end of an idle edge may cost.
const IDLE_END_BYTES_MAX: usize = 16 << 10;

type Edge = (Sender<RecordBatch>, Receiver<RecordBatch>);

fn parts(number: usize) -> RemoteParts<RecordBatch> {
    let edge = EdgeOptions::named(format!("edge {number}"));
    sockets::parts(edge, RemoteOptions::default())
}

fn open_edge(links: &[LinksHandle; 2], listener: &TcpListener, number: usize) -> Edge {
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (back, _) = listener.accept().unwrap();
    let sender = send_over(&links[0], out.into(), parts(number)).unwrap();
    let receiver = receive_over(&links[1], back.into(), parts(number)).unwrap();
    (sender, receiver)
}

fn is_negotiated((sender, receiver): &Edge) -> bool {
    let has_mode = |stats: Option<ringway::edge::remote::RemoteStats>| {
        stats.is_some_and(|stats| stats.mode.is_some())
    };
    // The receiver hears of the form with the first batch or element after it.
    has_mode(sender.remote_stats()) && has_mode(receiver.remote_stats())
}

#[test]
fn a_thousand_idle_edges_cost_sixteen_kibibytes_an_end_and_still_work() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let links = [io(), io()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // What both sides take for themselves is there before.
    let mut edges = vec![open_edge(&links, &listener, 0)];
    until(LONG, "the first edge is open", || is_negotiated(&edges[0]));
    let before = resident_bytes();
    edges.extend((1..=EDGES).map(|number| open_edge(&links, &listener, number)));
    until(LONG, "all edges are open", || {
        edges.iter().all(is_negotiated)
    });
    let each = resident_bytes().saturating_sub(before) / EDGES / 2;
    assert!(each <= IDLE_END_BYTES_MAX, "{each} bytes an end");

    for (number, (sender, receiver)) in edges.iter_mut().enumerate().step_by(100) {
        let column = Arc::new(Int64Array::from(vec![number as i64])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let element = StreamElement::Data(batch);
        sender.push(element.clone()).unwrap();
        assert_eq!(receiver.pop_timeout(LONG), Popped::Element(element));
    }
}
