//! The bridge for embedders: what it carries, and what each of its forms promises.

use std::time::Duration;

use ringway::batch::{Row, Rows};
use ringway::data_plane::{AcceptError, ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::{Ending, Popped, RejectReason, Transport};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::network::{NetworkSink, NetworkSource, OpenError};

type Numbers = Rows<i64>;

const LONG: Duration = Duration::from_secs(30);

fn rows(value: i64) -> StreamElement<Numbers> {
    StreamElement::Data(Rows::from(vec![Row::at(value, value)]))
}

fn source(transport: TransportChoice) -> (NetworkSource<Numbers>, DataPlane) {
    let plane = DataPlane::new();
    let options = ListenOptions::new("127.0.0.1", 0).transport(transport);
    (NetworkSource::new(plane.clone(), options), plane)
}

/// A bridge that is open at both ends.
fn bridge(transport: TransportChoice) -> (NetworkSink<Numbers>, NetworkSource<Numbers>) {
    let (mut source, plane) = source(transport);
    let port = source.prepare_listen().unwrap();
    let options = ConnectOptions::default().transport(transport);
    let mut sink = NetworkSink::new(plane, "127.0.0.1", port, options);
    sink.open().unwrap();
    source.open(Some(LONG)).unwrap();
    (sink, source)
}

#[test]
fn every_element_is_carried_as_it_is_and_none_is_made_up() {
    for transport in [TransportChoice::Auto, TransportChoice::Socket] {
        let (mut sink, mut source) = bridge(transport);
        let elements = [
            rows(1),
            StreamElement::Watermark(Watermark::active(5)),
            StreamElement::Watermark(Watermark::idle(6)),
            StreamElement::Barrier(Barrier::aligned(1)),
            StreamElement::Drain(Drain {
                subtask: 3,
                target_parallelism: 8,
            }),
            rows(2),
        ];
        for element in elements.clone() {
            sink.push(element).unwrap();
        }
        let taking = std::thread::spawn(move || {
            let taken: Vec<_> = (0..elements.len()).map(|_| source.produce()).collect();
            assert_eq!(taken, elements.map(Popped::Element));
            assert_eq!(source.produce(), Popped::Ended(Ending::End));
        });
        sink.close(LONG).unwrap();
        taking.join().unwrap();
    }
}

#[test]
fn the_awaited_forms_carry_the_same() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (mut source, plane) = source(TransportChoice::Socket);
    let port = source.prepare_listen().unwrap();
    let options = ConnectOptions::default().transport(TransportChoice::Socket);
    let mut sink = NetworkSink::<Numbers>::new(plane, "127.0.0.1", port, options);
    sink.open().unwrap();
    runtime.block_on(async {
        source.open_async().await.unwrap();
        for value in 0..1_000 {
            sink.push_async(rows(value)).await.unwrap();
            assert_eq!(source.produce_async().await, Popped::Element(rows(value)));
        }
    });
    sink.close(LONG).unwrap();
    assert_eq!(source.produce(), Popped::Ended(Ending::End));
}

#[test]
fn what_is_not_open_says_so_and_loses_nothing() {
    let (mut source, plane) = source(TransportChoice::Socket);
    assert_eq!(source.open(None), Err(OpenError::NotListening));
    assert_eq!(source.produce(), Popped::Empty);
    assert_eq!(source.counters(), None);
    let port = source.prepare_listen().unwrap();
    let timed_out = source.open(Some(Duration::from_millis(10)));
    assert_eq!(timed_out, Err(OpenError::Accept(AcceptError::TimedOut)));
    let mut sink = NetworkSink::<Numbers>::new(
        plane,
        "127.0.0.1",
        port,
        ConnectOptions::default().transport(TransportChoice::Socket),
    );
    let rejected = sink.push(rows(1)).unwrap_err();
    assert_eq!(rejected.element, rows(1));
    assert!(rejected.to_string().contains("open"), "{rejected}");
    sink.open().unwrap();
    sink.open().unwrap();
    source.open(Some(LONG)).unwrap();
    sink.push(rejected.element).unwrap();
    assert_eq!(source.produce(), Popped::Element(rows(1)));
}

#[test]
fn a_source_that_cancels_is_no_failure_and_a_sink_that_is_dropped_is_one() {
    let (mut sink, source) = bridge(TransportChoice::Socket);
    source.cancel();
    let reason = loop {
        if let Err(rejected) = sink.push(rows(1)) {
            break rejected.reason;
        }
    };
    assert_eq!(reason, RejectReason::Closed);

    let (sink, mut source) = bridge(TransportChoice::Socket);
    drop(sink);
    assert!(matches!(source.produce(), Popped::Ended(Ending::Failed(_))));
    let (sink, mut source) = bridge(TransportChoice::Socket);
    sink.fail("out of paper");
    match source.produce() {
        Popped::Ended(Ending::Failed(failure)) => {
            assert!(failure.to_string().contains("out of paper"), "{failure}");
        }
        other => panic!("it failed, not {other:?}"),
    }
}

#[test]
fn the_counters_tell_what_went_through_and_how() {
    let (mut sink, mut source) = bridge(TransportChoice::Socket);
    for value in 0..100 {
        sink.push(rows(value)).unwrap();
        assert_eq!(source.produce(), Popped::Element(rows(value)));
    }
    let is_counted = || {
        let (sent, taken) = (sink.counters().unwrap(), source.counters().unwrap());
        assert_eq!(
            (sent.transport, taken.transport),
            (Transport::Socket, Transport::Socket)
        );
        sent.driver.is_some()
            && sent.frames >= 100
            && taken.frames >= 100
            && sent.bytes > 100 * 8
            && sent.grants > 0
            && sent.credit_rows > 0
    };
    ringway_tests::within::until(LONG, "the counters", is_counted);
    let (sink, _source) = bridge(TransportChoice::Auto);
    assert_eq!(sink.counters().unwrap().transport, Transport::Local);
    assert_eq!(sink.counters().unwrap().driver, None);
}
