//! B09, B10, B12, B14: nothing is lost without a word.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Monotonic;
use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
use ringway::edge::remote::FinishError;
use ringway::edge::{EdgeOptions, Ending, FailureKind, Popped, RejectReason, Sender};
use ringway::element::{Drain, StreamElement};
use ringway::gate::{GateEvent, InputGate};
use ringway_shm::Bell;
use ringway_tests::conformance::elements::{
    Numbers, barrier, ending, next, number, push, value_of, watermark,
};
use ringway_tests::sockets::{CLOSE, frame, pair, recorded};
use ringway_tests::within::LONG;

use crate::rig::{each_until_the_end, on_all, open, rows};
use ringway_tests::process::{Process, part, tell};

fn connect(plane: &DataPlane, port: u16) -> Sender<Numbers> {
    let options = ConnectOptions::default()
        .transport(TransportChoice::Socket)
        .edge(EdgeOptions::named("map[0] -> sink[0]"));
    let sender = plane.connect("127.0.0.1", port, Bell::thread(), options);
    sender.unwrap()
}

/// Takes elements for ever, and tells of the fiftieth.
fn receive_until_killed() {
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = DataPlane::new().listen::<Numbers>(options, Bell::thread());
    let listener = listener.unwrap();
    tell("port", listener.port());
    let mut receiver = listener.accept_timeout(LONG).unwrap();
    for _ in 0..50 {
        assert!(next(&mut receiver).is_data());
    }
    tell("taken", 50);
    loop {
        thread::sleep(LONG);
    }
}

#[test]
fn b09_a_sender_whose_receivers_process_is_killed_hears_so_and_which_edge_it_was() {
    if part().is_some() {
        return receive_until_killed();
    }
    let test =
        "loss::b09_a_sender_whose_receivers_process_is_killed_hears_so_and_which_edge_it_was";
    let lasts: [Option<StreamElement<Numbers>>; 4] =
        [Some(number(1)), Some(watermark(1)), Some(barrier(1)), None];
    for last in lasts {
        let mut process = Process::start(test, "receiver");
        let mut sender = connect(&DataPlane::new(), process.number("port") as u16);
        for batch in 0..200 {
            let batch = rows(batch * 1_000..(batch + 1) * 1_000);
            // It may be full, of what the receiver does not take any more.
            if sender
                .push_timeout(batch, Duration::from_millis(100))
                .is_err()
            {
                break;
            }
        }
        process.number("taken");
        process.kill();
        let pushed = last.map_or(Ok(()), |last| sender.push(last).map_err(|no| no.reason));
        let reason = match pushed {
            Ok(()) => match sender.finish_and_wait(LONG).unwrap_err() {
                FinishError::Rejected(reason) => reason,
                FinishError::TimedOut => panic!("it does not hear of it"),
            },
            Err(reason) => reason,
        };
        let RejectReason::Failed(failure) = &reason else {
            panic!("a failure, not {reason}");
        };
        assert_eq!(failure.edge, "map[0] -> sink[0]");
        assert!(failure.peer.is_some(), "{failure}");
    }
}

/// What a receiver gets of a peer that writes these bytes and ends.
fn played(
    edge: &ringway_tests::conformance::subjects::RemoteEdge,
    bytes: &[u8],
) -> (usize, Ending) {
    let (mut out, back) = pair();
    let mut receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("read[0] -> map[0]"));
    out.write_all(bytes).unwrap();
    out.shutdown(Shutdown::Write).unwrap();
    let mut rows = 0;
    let ending = each_until_the_end(&mut receiver, |element| match element {
        StreamElement::Data(batch) => rows += batch.num_rows(),
        other => panic!("{other:?}"),
    });
    (rows, ending)
}

#[test]
fn b10_good_rows_arrive_and_what_is_broken_after_them_is_an_error_and_no_end() {
    on_all(|edge| {
        let good = frame(&recorded("ok_int_utf8"));
        assert_eq!(
            played(edge, &[&good[..], &CLOSE].concat()),
            (3, Ending::End)
        );

        let broken = frame(&recorded("metalen_minus1"));
        let cut = frame(&recorded("trunc_second_batch"));
        let short = &good[..good.len() - 3];
        type IsRight = fn(&FailureKind) -> bool;
        let undecodable: IsRight = |kind| matches!(kind, FailureKind::Undecodable(_));
        let protocol: IsRight = |kind| matches!(kind, FailureKind::Protocol(_));
        let lost: IsRight = |kind| matches!(kind, FailureKind::PeerLost);
        let cases: [(&str, &[u8], IsRight); 5] = [
            ("a broken batch", &broken, undecodable),
            ("a batch that is cut", &cut, undecodable),
            ("a frame that is cut", short, protocol),
            ("half of a length", &[0x10, 0], protocol),
            ("nothing, not even an end", &[], lost),
        ];
        for (what, bytes, is_right) in cases {
            let (rows, ending) = played(edge, &[&good[..], bytes].concat());
            let Ending::Failed(failure) = &ending else {
                panic!("{what} is an end: {ending}");
            };
            assert!(is_right(&failure.kind), "{what}: {failure}");
            assert_eq!(failure.edge, "read[0] -> map[0]");
            assert!(failure.peer.is_some(), "{failure}");
            // What is whole in front of the cut may have come.
            assert!(rows >= 3, "{what}: {rows} rows");
        }
    });
}

fn of_every_kind() -> [StreamElement<Numbers>; 5] {
    let drain = StreamElement::Drain(Drain {
        subtask: 1,
        target_parallelism: 2,
    });
    [number(1), watermark(10), barrier(1), drain, number(2)]
}

#[test]
fn b12_every_output_gets_every_control_element_once_and_in_order_with_data_and_without() {
    on_all(|edge| {
        let options = EdgeOptions::named("edge");
        let (mut outs, mut ins): (Vec<_>, Vec<_>) = (0..3).map(|_| open(edge, &options)).unzip();
        for element in of_every_kind() {
            let has_data = element.is_data();
            for (output, out) in outs.iter_mut().enumerate() {
                if !has_data || output > 0 {
                    push(out, element.clone());
                }
            }
        }
        for out in outs {
            out.finish().unwrap();
        }
        for (input, receiver) in ins.iter_mut().enumerate() {
            for element in of_every_kind() {
                if !element.is_data() || input > 0 {
                    assert_eq!(next(receiver), element);
                }
            }
            assert_eq!(ending(receiver), Ending::End);
        }
    });
}

#[test]
fn b12_a_union_of_two_connections_passes_on_every_control_element() {
    on_all(|edge| {
        let options = EdgeOptions::named("edge");
        let (outs, ins): (Vec<_>, Vec<_>) = (0..2).map(|_| open(edge, &options)).unzip();
        for mut out in outs {
            for element in of_every_kind() {
                push(&mut out, element);
            }
            out.finish().unwrap();
        }
        let mut gate = InputGate::new(ins);
        let (mut rows, mut marks, mut barriers, mut drains) = (Vec::new(), 0, 0, 0);
        let clock = std::time::Instant::now();
        let ending = loop {
            assert!(clock.elapsed() < LONG, "it hangs");
            match gate.poll(Monotonic(clock.elapsed())) {
                GateEvent::Data { batch, .. } => rows.push(value_of(StreamElement::Data(batch))),
                GateEvent::Watermark(_) => marks += 1,
                GateEvent::Barrier { barrier, .. } => {
                    assert_eq!(barrier.id, 1);
                    assert_eq!(rows, [1, 1], "what is before it, and no more");
                    barriers += 1;
                }
                GateEvent::Drain(_) => drains += 1,
                GateEvent::Ended(ending) => break ending,
                GateEvent::Empty => thread::yield_now(),
                _ => {}
            }
        };
        assert_eq!(ending, Ending::End);
        assert_eq!(rows, [1, 1, 2, 2]);
        // The last watermark is that of the end.
        assert!(marks >= 1, "{marks}");
        assert_eq!((barriers, drains), (1, 2));
    });
}

/// Sends so many rows to a port, and leaves nothing behind.
fn send_and_exit(part: &str) -> ! {
    let (port, count) = part.split_once(' ').unwrap();
    let mut sender = connect(&DataPlane::new(), port.parse().unwrap());
    for row in 0..count.parse().unwrap() {
        sender.push(number(row)).unwrap();
    }
    sender.finish_and_wait(LONG).unwrap();
    std::process::exit(0);
}

#[test]
fn b14_processes_that_send_almost_nothing_and_exit_at_once_end_with_every_row() {
    if let Some(part) = part() {
        send_and_exit(&part);
    }
    let test = "loss::b14_processes_that_send_almost_nothing_and_exit_at_once_end_with_every_row";
    let plane = DataPlane::new();
    for round in 0..45 {
        let options = ListenOptions::new("127.0.0.1", 0);
        let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
        let count = round % 3;
        let process = Process::start(test, &format!("{} {count}", listener.port()));
        let mut receiver = listener.accept_timeout(LONG).unwrap();
        for row in 0..count {
            assert_eq!(next(&mut receiver), number(row));
        }
        assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
        assert!(process.end().success());
    }
}
