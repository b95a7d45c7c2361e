//! Scenario B04 over shared memory: idle edges cost what they say, and give it back.
//!
//! Goal: what an edge takes is known before it is opened, and does not grow with what goes through
//! it. Method: the segments that this process has mapped, its own memory, and its descriptors,
//! around edges of which it has both ends. A binary of its own, so that no other test allocates
//! meanwhile.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender};
use ringway::element::StreamElement;
use ringway_shm::link::LinkConfig;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::{SHARED, SharedEdge};
use ringway_tests::usage::open_descriptors;
use ringway_tests::within::{LONG, until};

const EDGES: usize = 100;
const CAPACITY: usize = 256;
const SEGMENT_BYTES: usize = 256 << 10;

/// Messages that an edge has room for beyond its capacity.
const MESSAGES_MORE: usize = 64;

/// What the consumer's segment takes: its positions, and a page for whether it has gone.
const CONSUMER_BYTES: usize = 8 << 10;

/// What one end of an idle edge may cost of the process's own memory, as one over a connection.
const IDLE_END_BYTES_MAX: usize = 16 << 10;

/// What may stay of an edge that was closed, by the allocator's doing.
const KEPT_BYTES_MAX: usize = 1 << 10;

type Edge = (Sender<RecordBatch>, Receiver<RecordBatch>);

fn open_edge() -> Edge {
    let edge = SharedEdge(
        SHARED
            .0
            .with(|remote| remote.shared.segment_bytes = Some(SEGMENT_BYTES)),
    );
    edge.open(EdgeOptions::named("edge").capacity(CAPACITY))
}

/// Bytes of all segments: each is mapped more than once, and all of it is reserved.
fn segment_bytes() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut segments: HashMap<&str, usize> = HashMap::new();
    for line in maps.lines().filter(|line| line.contains("/memfd:")) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let hex = |text| usize::from_str_radix(text, 16).unwrap();
        let (from, to) = fields[0].split_once('-').unwrap();
        let end = hex(fields[2]) + hex(to) - hex(from);
        let bytes = segments.entry(fields[4]).or_default();
        *bytes = end.max(*bytes);
    }
    segments.values().sum()
}

/// Resident bytes that are no segments.
fn own_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

fn one_row(value: i64) -> RecordBatch {
    let column = Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

/// Opens edges, uses each once, and closes them.
fn play() {
    let page = rustix::param::page_size();
    let config = LinkConfig {
        arena_bytes: SEGMENT_BYTES,
        messages_max: CAPACITY + MESSAGES_MORE,
        ..LinkConfig::default()
    };
    let said = config.segment_bytes() + CONSUMER_BYTES.next_multiple_of(page);
    let (segments, own, descriptors) = (segment_bytes(), own_bytes(), open_descriptors());

    let mut edges: Vec<Edge> = (0..EDGES).map(|_| open_edge()).collect();
    let each = (segment_bytes() - segments) / EDGES;
    assert_eq!(each, said, "the segments of an edge");
    let idle = own_bytes().saturating_sub(own) / EDGES / 2;
    assert!(idle <= IDLE_END_BYTES_MAX, "{idle} bytes an end");

    for (value, (sender, receiver)) in edges.iter_mut().enumerate() {
        let element = StreamElement::Data(one_row(value as i64));
        sender.try_push(element.clone()).unwrap();
        assert_eq!(receiver.pop_timeout(LONG), Popped::Element(element));
    }
    let used = (segment_bytes() - segments) / EDGES;
    assert_eq!(used, said, "a batch has its place there");

    for (sender, mut receiver) in edges {
        sender.finish().unwrap();
        assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
    }
    until(LONG, "all is given back", || {
        segment_bytes() == segments && open_descriptors() == descriptors
    });
}

#[test]
fn b04_idle_edges_over_shared_memory_cost_what_they_say_and_give_it_back() {
    // What both sides take for themselves is there before, and stays.
    let first = open_edge();
    play();
    let before = own_bytes();
    for _ in 0..5 {
        play();
    }
    let kept = own_bytes().saturating_sub(before) / EDGES / 5;
    assert!(kept <= KEPT_BYTES_MAX, "{kept} bytes of each edge are kept");
    drop(first);
}
