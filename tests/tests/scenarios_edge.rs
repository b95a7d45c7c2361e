//! Failures that others met on their channels, played on an edge between two threads.
//!
//! Each test is one scenario; its name begins with the scenario's number.

use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ringway::batch::{Row, Rows};
use ringway::data_plane::{
    ConnectOptions, DISABLE_LOCAL_VARIABLE, DataPlane, ListenOptions, TransportChoice,
};
use ringway::edge::{
    EdgeOptions, Ending, Failure, Popped, Receiver, RejectReason, Sender, Transport, local,
};
use ringway::element::{Drain, StreamElement};
use ringway_shm::Bell;
use ringway_tests::conformance::elements::{
    Counted, Numbers, barrier, counted, ending, next, number, push, rejected, room_for, stop,
    value_of, watermark,
};
use ringway_tests::within::{LONG, join_within, one_below, until, within};

fn open(options: EdgeOptions) -> (Sender<Numbers>, Receiver<Numbers>) {
    local::open(options, Bell::thread(), Bell::thread())
}

/// Leaves the calling thread one CPU, as if the machine had no other.
fn pin_to_one_cpu() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    let mut one = rustix::thread::CpuSet::new();
    one.set(first.expect("a thread is allowed on some CPU"));
    rustix::thread::sched_setaffinity(None, &one).unwrap();
}

#[test]
fn b09_a_sender_learns_at_its_next_call_that_the_receiver_is_gone() {
    let thousand = || StreamElement::Data((0..1_000).map(Row::untimed).collect::<Numbers>());
    type Last = fn(Sender<Numbers>) -> RejectReason;
    let lasts: [Last; 4] = [
        |mut sender| sender.push(number(1)).unwrap_err().reason,
        |mut sender| sender.push(watermark(1)).unwrap_err().reason,
        |mut sender| sender.push(barrier(1)).unwrap_err().reason,
        |sender| sender.finish().unwrap_err(),
    ];
    for last in lasts {
        let (mut sender, mut receiver) = open(EdgeOptions::named("map[0] -> sink[0]"));
        let receiving = thread::spawn(move || {
            for _ in 0..50 {
                assert_eq!(next(&mut receiver), thousand());
            }
            // Unwinds as a subtask that panics does: the receiver is dropped, not closed.
            std::panic::resume_unwind(Box::new("the receiver dies"));
        });
        for _ in 0..200 {
            if sender.push(thousand()).is_err() {
                break;
            }
        }
        assert!(receiving.join().is_err());
        let reason = last(sender);
        let expected = Failure::peer_lost("map[0] -> sink[0]");
        assert!(reason.to_string().contains("map[0] -> sink[0]"), "{reason}");
        assert_eq!(reason, RejectReason::Failed(expected));
    }
}

#[test]
fn b09_a_receiver_that_closes_in_order_is_reported_as_such() {
    let (mut sender, receiver) = open(EdgeOptions::named("map[0] -> sink[0]"));
    push(&mut sender, number(1));
    receiver.close();
    assert_eq!(rejected(&mut sender, number(2)).0, RejectReason::Closed);
    assert_eq!(sender.finish(), Err(RejectReason::Closed));
}

#[test]
fn b10_good_rows_then_a_failure_are_never_an_end() {
    let (mut sender, mut receiver) = open(EdgeOptions::named("read[0] -> map[0]"));
    for value in 1..=3 {
        push(&mut sender, number(value));
    }
    sender.fail("flights.json:4: expected a number");
    for value in 1..=3 {
        assert_eq!(next(&mut receiver), number(value));
    }
    let ending = ending(&mut receiver);
    assert!(!ending.is_orderly());
    let text = ending.to_string();
    for part in ["read[0] -> map[0]", "flights.json:4"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn b12_control_elements_cross_the_ring_once_and_in_order() {
    let (mut sender, mut receiver) = open(room_for(8));
    let drain = StreamElement::Drain(Drain {
        subtask: 1,
        target_parallelism: 2,
    });
    let sent = [number(1), watermark(10), barrier(1), drain, number(2)];
    for element in sent.clone() {
        push(&mut sender, element);
    }
    sender.finish().unwrap();
    for element in sent {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(ending(&mut receiver), Ending::End);
}

/// A thousand streams of 0, 1 or 2 rows, whose sender's thread exits at once. Returns the sum
/// of all rows.
fn short_streams(transport: TransportChoice) -> i64 {
    let plane = DataPlane::new();
    let mut sum = 0;
    for round in 0..1_000_i64 {
        let options = ListenOptions::new("127.0.0.1", 0);
        let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
        let (plane, port) = (plane.clone(), listener.port());
        let sending = thread::spawn(move || {
            let options = ConnectOptions::default().transport(transport);
            let sender = plane.connect("127.0.0.1", port, Bell::thread(), options);
            let mut sender = sender.unwrap();
            for row in 0..round % 3 {
                sender.push(number(10 * round + row)).unwrap();
            }
            sender.finish().unwrap();
        });
        let mut receiver = listener.accept_timeout(LONG).unwrap();
        let mut rows = 0;
        let ending = loop {
            match receiver.pop_timeout(LONG) {
                Popped::Element(element) => {
                    assert_eq!(value_of(element.clone()), 10 * round + rows);
                    sum += value_of(element);
                    rows += 1;
                }
                Popped::Ended(ending) => break ending,
                Popped::Empty => panic!("stream {round} hangs"),
            }
        };
        assert_eq!((ending, rows), (Ending::End, round % 3));
        sending.join().unwrap();
    }
    sum
}

/// The sum of all rows that [`short_streams`] sends.
fn sum_of_short_streams() -> i64 {
    let rows = |round: i64| (0..round % 3).map(move |row| 10 * round + row);
    (0..1_000).flat_map(rows).sum()
}

#[test]
fn b14_a_thousand_very_short_streams_end_with_every_row() {
    let sum = within(LONG, "a thousand streams", || {
        short_streams(TransportChoice::Local)
    });
    assert_eq!(sum, sum_of_short_streams());
}

#[test]
fn b14_a_thousand_very_short_streams_on_one_cpu_end_with_every_row() {
    let sum = within(LONG, "a thousand streams on one CPU", || {
        pin_to_one_cpu();
        short_streams(TransportChoice::Local)
    });
    assert_eq!(sum, sum_of_short_streams());
}

#[test]
fn b14_a_thousand_very_short_streams_over_connections_end_with_every_row() {
    let work = || short_streams(TransportChoice::Socket);
    let sum = within(2 * LONG, "a thousand streams over connections", work);
    assert_eq!(sum, sum_of_short_streams());
}

#[test]
fn b14_a_thousand_very_short_streams_over_shared_memory_end_with_every_row() {
    let work = || short_streams(TransportChoice::Shared);
    let sum = within(2 * LONG, "a thousand streams over shared memory", work);
    assert_eq!(sum, sum_of_short_streams());
}

#[test]
fn b54_every_name_of_a_listener_in_this_process_gets_the_local_transport() {
    let plane = DataPlane::process();
    for host in ["worker-3", "192.0.2.7", "127.0.0.1", "localhost", "0.0.0.0"] {
        let options = ListenOptions::new("0.0.0.0", 0)
            .advertised("worker-3")
            .advertised("192.0.2.7");
        let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
        let port = listener.port();
        let hits = plane.stats().hits;
        let mut sender = plane
            .connect(host, port, Bell::thread(), ConnectOptions::default())
            .unwrap();
        let mut receiver = listener.accept().unwrap();
        assert_eq!(sender.transport(), Transport::Local);
        assert_eq!(receiver.transport(), Transport::Local);
        assert_eq!(plane.stats().hits, hits + 1);
        push(&mut sender, number(1));
        assert_eq!(next(&mut receiver), number(1));
    }
}

/// What the next test runs in a process of its own.
#[test]
fn b54_the_environment_decides_whether_the_local_transport_is_on() {
    let off = std::env::var_os(DISABLE_LOCAL_VARIABLE).is_some_and(|value| value == "1");
    let plane = DataPlane::new();
    assert_eq!(plane.is_local_enabled(), !off);
    let options = ListenOptions::new("127.0.0.1", 0);
    let listener = plane.listen::<Numbers>(options, Bell::thread()).unwrap();
    let connect = |transport| {
        let options = ConnectOptions::default().transport(transport);
        plane.connect::<Numbers>("127.0.0.1", listener.port(), Bell::thread(), options)
    };
    if off {
        let error = connect(TransportChoice::Local).unwrap_err().to_string();
        assert!(error.contains(DISABLE_LOCAL_VARIABLE), "{error}");
    }
    let sender = connect(TransportChoice::Auto).unwrap();
    assert_eq!(sender.transport() != Transport::Local, off);
}

#[test]
fn b54_the_local_transport_can_be_switched_off_from_outside_the_process() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "b54_the_environment_decides_whether_the_local_transport_is_on",
        ])
        .env(DISABLE_LOCAL_VARIABLE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

/// CPU time of the calling thread.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn b69_an_idle_pair_that_waits_uses_under_two_percent_of_a_core() {
    let time = Duration::from_secs(2);
    let spent = |wait: Box<dyn FnOnce() + Send>| {
        thread::spawn(move || {
            let before = thread_cpu_time();
            wait();
            thread_cpu_time() - before
        })
    };
    let (empty_sender, mut receiver) = open(room_for(1));
    let popping = spent(Box::new(move || {
        assert_eq!(receiver.pop_timeout(time), Popped::Empty);
    }));
    let (mut sender, full_receiver) = open(room_for(1));
    push(&mut sender, number(1));
    let pushing = spent(Box::new(move || {
        let rejected = sender.push_timeout(number(2), time).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Full);
    }));
    let spent = join_within(LONG, "the pop", popping) + join_within(LONG, "the push", pushing);
    assert!(spent < time / 50, "{spent:?} of CPU time in {time:?}");
    drop((empty_sender, full_receiver));
}

#[test]
fn b69_both_ends_on_one_cpu_with_room_for_one_element_get_along() {
    let count = 20_000;
    let sum = within(LONG, "20,000 elements on one CPU", move || {
        pin_to_one_cpu();
        let (mut sender, mut receiver) = open(room_for(1));
        let sending = thread::spawn(move || {
            for value in 0..count {
                sender.push(number(value)).unwrap();
            }
            sender.finish().unwrap();
        });
        let mut sum = 0;
        let ending = loop {
            match receiver.pop() {
                Popped::Element(element) => sum += value_of(element),
                Popped::Empty => panic!("the waiting form has no lull"),
                Popped::Ended(ending) => break ending,
            }
        };
        assert_eq!(ending, Ending::End);
        sending.join().unwrap();
        sum
    });
    assert_eq!(sum, count * (count - 1) / 2);
}

fn open_counted(capacity: usize) -> (Sender<Counted>, Receiver<Counted>, Bell) {
    let bell = Bell::thread();
    let (sender, receiver) = local::open(room_for(capacity), bell.clone(), Bell::thread());
    (sender, receiver, bell)
}

#[test]
fn b71_elements_of_a_sender_that_is_dropped_are_taken_before_the_loss_is_told() {
    let alive = Arc::new(());
    let (mut sender, mut receiver, _) = open_counted(4);
    for _ in 0..3 {
        push(&mut sender, counted(&alive));
    }
    drop(sender);
    for _ in 0..3 {
        assert!(next(&mut receiver).is_data());
    }
    assert_eq!(
        ending(&mut receiver),
        Ending::Failed(Failure::peer_lost("edge"))
    );
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn b71_elements_of_a_receiver_that_is_dropped_are_freed() {
    let alive = Arc::new(());
    let (mut sender, receiver, _) = open_counted(4);
    for _ in 0..3 {
        push(&mut sender, counted(&alive));
    }
    drop(receiver);
    assert_eq!(Arc::strong_count(&alive), 1);
    let (reason, _) = rejected(&mut sender, stop());
    assert_eq!(reason, RejectReason::Failed(Failure::peer_lost("edge")));
}

#[test]
fn b71_a_sender_blocked_on_a_full_edge_wakes_when_the_receiver_is_dropped() {
    let woken_after = || {
        let alive = Arc::new(());
        let (mut sender, receiver, bell) = open_counted(1);
        push(&mut sender, counted(&alive));
        let element = counted(&alive);
        let pushing = thread::spawn(move || sender.push(element).unwrap_err().reason);
        until(LONG, "the sender sleeps", || bell.is_armed());
        let start = Instant::now();
        drop(receiver);
        let reason = join_within(LONG, "the push returns", pushing);
        let woken_after = start.elapsed();
        assert_eq!(reason, RejectReason::Failed(Failure::peer_lost("edge")));
        assert_eq!(Arc::strong_count(&alive), 1);
        woken_after
    };
    one_below(Duration::from_millis(100), "the wake-up", woken_after);
}

/// Counts the living, and panics when the one with the fuse is dropped.
#[derive(Clone, Debug)]
struct Explosive {
    _alive: Arc<()>,
    fuse: bool,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        if self.fuse && !thread::panicking() {
            std::panic::resume_unwind(Box::new("an element panics when it is dropped"));
        }
    }
}

#[test]
fn b71_an_element_whose_drop_panics_takes_no_other_with_it() {
    for position in 0..3 {
        let alive = Arc::new(());
        let (mut sender, receiver) = local::open(room_for(4), Bell::thread(), Bell::thread());
        for value in 0..3 {
            let explosive = Explosive {
                _alive: Arc::clone(&alive),
                fuse: value == position,
            };
            let rows = Rows::from(vec![Row::untimed(explosive)]);
            sender.try_push(StreamElement::Data(rows)).unwrap();
        }
        let dropping = thread::spawn(move || drop(receiver));
        assert!(dropping.join().is_err());
        assert!(sender.is_closed());
        assert!(sender.finish().is_err());
        assert_eq!(Arc::strong_count(&alive), 1, "element {position} panicked");
    }
}
