//! The bridge for embedders: what it carries, and what each of its forms promises.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ringway::batch::{Row, Rows};
use ringway::data_plane::{AcceptError, ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::{EdgeOptions, Ending, Popped, RejectReason, Transport};
use ringway::element::{Barrier, Drain, StreamElement, Watermark};
use ringway::network::{NetworkSink, NetworkSource, OpenError};
use ringway::wire::Wired;
use ringway_tests::within::{LONG, until};

type Numbers = Rows<i64>;

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
    bridge_with(ListenOptions::new("127.0.0.1", 0).transport(transport))
}

/// A bridge that is open at both ends, as the options of its source say.
fn bridge_with<B: Wired>(options: ListenOptions) -> (NetworkSink<B>, NetworkSource<B>) {
    let plane = DataPlane::new();
    let transport = options.transport;
    let mut source = NetworkSource::new(plane.clone(), options);
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
fn a_sink_that_cancels_gives_what_is_on_the_way_and_no_end() {
    for transport in [TransportChoice::Auto, TransportChoice::Socket] {
        let (mut sink, mut source) = bridge(transport);
        sink.push(rows(1)).unwrap();
        sink.push(rows(2)).unwrap();
        sink.cancel();
        assert_eq!(source.produce(), Popped::Element(rows(1)));
        assert_eq!(source.produce(), Popped::Element(rows(2)));
        assert_eq!(source.produce(), Popped::Ended(Ending::Cancelled));
        assert_eq!(source.produce(), Popped::Ended(Ending::Cancelled), "again");
    }
}

#[test]
fn the_polled_forms_never_wait_and_lose_nothing() {
    for transport in [TransportChoice::Auto, TransportChoice::Socket] {
        let (mut source, plane) = source(transport);
        assert_eq!(source.try_produce(), Popped::Empty, "it is not open");
        let port = source.prepare_listen().unwrap();
        let options = ConnectOptions::default().transport(transport);
        let mut sink = NetworkSink::<Numbers>::new(plane, "127.0.0.1", port, options);
        let rejected = sink.try_push(rows(-1)).unwrap_err();
        assert_eq!(rejected.element, rows(-1));
        assert!(rejected.to_string().contains("open"), "{rejected}");
        sink.open().unwrap();
        source.open(Some(LONG)).unwrap();
        assert_eq!(source.try_produce(), Popped::Empty);
        let (mut sent, mut full) = (0, 0);
        // Each time that it is full, one is taken.
        let mut taken = 0;
        while full < 10 {
            match sink.try_push(rows(sent)) {
                Ok(()) => sent += 1,
                Err(rejected) => {
                    assert_eq!(rejected.reason, RejectReason::Full);
                    assert_eq!(rejected.element, rows(sent), "it comes back");
                    full += 1;
                    until(LONG, "an element comes", || match source.try_produce() {
                        Popped::Empty => false,
                        Popped::Element(element) => {
                            assert_eq!(element, rows(taken));
                            true
                        }
                        ended => panic!("{ended:?}"),
                    });
                    taken += 1;
                }
            }
        }
        let taking = std::thread::spawn(move || {
            for value in taken..sent {
                assert_eq!(source.produce(), Popped::Element(rows(value)));
            }
            assert_eq!(source.produce(), Popped::Ended(Ending::End));
            assert_eq!(source.try_produce(), Popped::Ended(Ending::End));
        });
        sink.close(LONG).unwrap();
        taking.join().unwrap();
    }
}

#[test]
fn the_time_for_which_a_push_waits_for_room_is_counted_once_a_wait() {
    let options = ListenOptions::new("127.0.0.1", 0);
    let (mut sink, mut source) =
        bridge_with::<Numbers>(options.edge(EdgeOptions::named("bridge").capacity(1)));
    let time = Duration::from_millis(20);
    sink.push(rows(0)).unwrap();
    let before = sink.counters().unwrap();
    assert_eq!((before.blocked_ns, before.saturations), (0, 0));
    for times in 1..=3 {
        let sender = sink.sender().unwrap();
        let rejected = sender.push_timeout(rows(1), time).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Full);
        let counters = sink.counters().unwrap();
        assert_eq!(counters.saturations, times);
        let waited = Duration::from_nanos(counters.blocked_ns);
        assert!(waited >= time * times as u32 * 9 / 10, "{counters:?}");
    }
    assert_eq!(source.produce(), Popped::Element(rows(0)));
    let before = sink.counters().unwrap();
    sink.push(rows(1)).unwrap();
    assert_eq!(sink.counters().unwrap(), before, "that one did not wait");
}

#[test]
fn what_waits_for_credit_is_counted_and_goes_on_with_the_next_grant() {
    const WINDOW: u32 = 64;
    let remote = RemoteOptions {
        v1_window_rows: WINDOW,
        ..RemoteOptions::version_1()
    };
    let options = ListenOptions::new("127.0.0.1", 0).transport(TransportChoice::Socket);
    let (mut sink, mut source) = bridge_with::<Numbers>(options.remote(remote));
    let batch = |number: i64| {
        let all = (0..i64::from(WINDOW)).map(|row| Row::untimed(number * i64::from(WINDOW) + row));
        StreamElement::Data(all.collect::<Numbers>())
    };
    sink.push(batch(0)).unwrap();
    until(LONG, "the window is used up", || {
        let counters = sink.counters().unwrap();
        (counters.frames, counters.credit_rows) == (1, 0)
    });
    assert_eq!(sink.counters().unwrap().saturations, 0, "it had credit");
    sink.push(batch(1)).unwrap();
    until(LONG, "the second waits", || {
        sink.counters().unwrap().saturations == 1
    });
    let counters = sink.counters().unwrap();
    assert_eq!(
        (counters.frames, counters.blocked_ns),
        (1, 0),
        "no push did"
    );
    assert_eq!(source.produce(), Popped::Element(batch(0)));
    assert_eq!(source.produce(), Popped::Element(batch(1)));
    assert!(sink.counters().unwrap().grants >= 2);
}

#[test]
fn large_batches_are_sent_from_where_they_lie_and_what_is_copied_is_counted() {
    let options = || ListenOptions::new("127.0.0.1", 0).transport(TransportChoice::Socket);
    let batch = |rows: i64| {
        let column = Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef;
        StreamElement::Data(RecordBatch::try_from_iter([("n", column)]).unwrap())
    };
    let counted = |element: StreamElement<RecordBatch>| {
        let (mut sink, mut source) = bridge_with::<RecordBatch>(options());
        for _ in 0..4 {
            sink.push(element.clone()).unwrap();
            assert_eq!(source.produce(), Popped::Element(element.clone()));
        }
        until(LONG, "all is counted", || {
            sink.counters().unwrap().frames >= 4
        });
        (sink.counters().unwrap(), source.counters().unwrap())
    };
    let (large, taken) = counted(batch(128 << 10));
    assert!(large.bytes > 4 << 20, "{large:?}");
    assert!(
        large.copied_bytes < 16 << 10,
        "no more than heads: {large:?}"
    );
    assert!(
        taken.copied_bytes < large.bytes / 2,
        "no more than what came before the rest was read into place: {taken:?}"
    );
    let (small, taken) = counted(batch(8));
    for end in [small, taken] {
        assert!(end.copied_bytes >= 4 * 8 * 8, "all of it: {end:?}");
        assert!(end.copied_bytes <= small.bytes, "{end:?}");
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
    until(LONG, "the counters", is_counted);
    let (sink, _source) = bridge(TransportChoice::Auto);
    assert_eq!(sink.counters().unwrap().transport, Transport::Local);
    assert_eq!(sink.counters().unwrap().driver, None);
}
