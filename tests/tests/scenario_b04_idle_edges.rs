//! Scenario B04: thousands of idle edges cost what they say, and give it back.
//!
//! Goal: memory follows the traffic, not the size of the graph. Method: resident memory and open
//! descriptors of this process around 5,000 edges that are opened, used once, and closed. A
//! binary of its own, so that no other test allocates meanwhile. Slots are virtual memory that
//! nobody has touched until an element goes through them.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver, Sender, local};
use ringway::element::StreamElement;
use ringway_shm::Bell;
use ringway_tests::usage::{open_descriptors, resident_bytes};

const EDGES: usize = 5_000;

/// What one idle edge may cost beyond its slots.
const IDLE_EDGE_BYTES_MAX: usize = 2 << 10;

type Edge = (Sender<RecordBatch>, Receiver<RecordBatch>);

fn open(bells: &[Bell; 2], number: usize) -> Edge {
    let options = EdgeOptions::named(format!("edge {number}"));
    local::open(options, bells[0].clone(), bells[1].clone())
}

fn one_row(value: i64) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("value", DataType::Int64, false)]);
    let values = Arc::new(Int64Array::from(vec![value]));
    RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()
}

#[test]
fn five_thousand_idle_edges_cost_two_kibibytes_each_and_give_all_memory_back() {
    let bells = [Bell::thread(), Bell::thread()];
    let descriptors_before = open_descriptors();
    let before = resident_bytes();
    let each_since = |now: usize| now.saturating_sub(before) / EDGES;
    let page = rustix::param::page_size();

    let mut edges: Vec<Edge> = (0..EDGES).map(|number| open(&bells, number)).collect();
    // The first page of the slots may hold the allocator's own note about them.
    let idle = each_since(resident_bytes());
    assert!(
        idle <= IDLE_EDGE_BYTES_MAX + page,
        "{idle} bytes an idle edge"
    );
    assert_eq!(open_descriptors(), descriptors_before);

    for (value, (sender, receiver)) in edges.iter_mut().enumerate() {
        let element = StreamElement::Data(one_row(value as i64));
        sender.try_push(element.clone()).unwrap();
        assert_eq!(receiver.try_pop(), Popped::Element(element));
    }
    let used = each_since(resident_bytes());
    assert!(
        used <= IDLE_EDGE_BYTES_MAX + 2 * page,
        "{used} bytes an edge used once"
    );

    for (sender, mut receiver) in edges {
        sender.finish().unwrap();
        assert_eq!(receiver.try_pop(), Popped::Ended(Ending::End));
    }
    let after = resident_bytes();
    let allowed = before + before / 10 + (16 << 20);
    assert!(after <= allowed, "{before} bytes before, {after} after");
    assert_eq!(open_descriptors(), descriptors_before);
}
