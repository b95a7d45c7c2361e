//! Failures that others met with memory that processes share. Segments that are cut, and huge
//! pages that are not there, are also in the suites of `shm`.

use std::fs;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::{
    ArrayRef, Decimal128Array, Int64Array, IntervalMonthDayNanoArray, RecordBatch, StringViewArray,
};
use arrow::datatypes::IntervalMonthDayNano;
use ringway::clock::process_cpu_time;
use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions};
use ringway::edge::{Bell, EdgeOptions, Ending, Popped, Receiver, RejectReason, Sender, Transport};
use ringway::element::{Drain, StreamElement};
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::elements::{Numbers, barrier, next, number, watermark};
use ringway_tests::conformance::subjects::{SHARED, SharedEdge};
use ringway_tests::process::{Process, hear, part, tell};
use ringway_tests::within::{LONG, until};

use crate::rig::{all, are_all, data, held};

#[test]
fn b12_control_elements_cross_once_and_in_order() {
    let (mut sender, mut receiver) = SHARED.open::<Numbers>(EdgeOptions::named("edge"));
    let drain = StreamElement::Drain(Drain {
        subtask: 1,
        target_parallelism: 2,
    });
    let sent = [number(1), watermark(10), barrier(1), drain, number(2)];
    for element in sent.clone() {
        sender.push(element).unwrap();
    }
    sender.finish().unwrap();
    for element in sent {
        assert_eq!(next(&mut receiver), element);
    }
    assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
}

/// Of a flat batch every buffer begins at a multiple of 64, whatever came before it: where it lies
/// in the segment, and where it was copied out of it.
#[test]
fn b26_bodies_are_whole_and_aligned_behind_whatever_lies_before_them() {
    let batch = |rows: i64, shift: usize| {
        let texts = (0..rows).map(|row| "x".repeat(shift + row as usize % 3));
        let decimals = Decimal128Array::from_iter_values((0..rows).map(i128::from));
        let intervals = (0..rows as i32).map(|row| IntervalMonthDayNano::new(row, shift as i32, 7));
        let intervals = IntervalMonthDayNanoArray::from_iter_values(intervals);
        let columns: [(&str, ArrayRef); 4] = [
            ("text", Arc::new(StringViewArray::from_iter_values(texts))),
            ("n", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("decimal", Arc::new(decimals)),
            ("interval", Arc::new(intervals)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    for copies in [false, true] {
        let edge = SharedEdge(SHARED.0.with(|remote| remote.shared.copies = copies));
        let (mut sender, mut receiver) = edge.open::<RecordBatch>(EdgeOptions::named("edge"));
        for shift in 0..=64 {
            // A message that ends anywhere, then a batch that is copied out and one that is not.
            for rows in [1, 500] {
                let sent = [batch(1, shift), batch(rows, shift)];
                for batch in &sent {
                    sender.push(StreamElement::Data(batch.clone())).unwrap();
                }
                for sent in sent {
                    let StreamElement::Data(batch) = next(&mut receiver) else {
                        panic!("a batch comes");
                    };
                    assert_eq!(batch, sent, "{shift}");
                    for column in batch.columns() {
                        let at = column.to_data().buffers()[0].as_ptr().addr();
                        assert_eq!(at % 64, 0, "{shift}: {}", column.data_type());
                    }
                }
            }
        }
    }
}

/// Whatever it calls this host: that both ends are on one is seen, not read from their names.
#[test]
fn b54_another_process_of_this_host_is_met_by_whatever_name_it_connects_to() {
    const TEST: &str =
        "scenarios::b54_another_process_of_this_host_is_met_by_whatever_name_it_connects_to";
    let plane = DataPlane::new();
    if part().is_some() {
        while let Some(host) = hear() {
            let port = hear().unwrap().parse().unwrap();
            let options = ConnectOptions::default().within(LONG);
            let connected = plane.connect(&host, port, Bell::thread(), options);
            let mut sender: Sender<RecordBatch> = connected.unwrap();
            sender.push(data(0..10)).unwrap();
            until(LONG, "it is decided", || sender.poll_transport().is_some());
            tell("transport", sender.transport());
            sender.finish().unwrap();
        }
        return;
    }
    let mut hosts = vec![
        "127.0.0.1".to_owned(),
        "127.0.0.2".to_owned(),
        "localhost".to_owned(),
    ];
    // What the host calls itself, and the address that others know it by, where it has those.
    let name = rustix::system::uname()
        .nodename()
        .to_str()
        .unwrap()
        .to_owned();
    hosts.extend((name.as_str(), 0).to_socket_addrs().is_ok().then_some(name));
    let outside = UdpSocket::bind("0.0.0.0:0").unwrap();
    if outside.connect("192.0.2.1:9").is_ok() {
        hosts.push(outside.local_addr().unwrap().ip().to_string());
    }
    let mut child = Process::start(TEST, "connects");
    for host in &hosts {
        let options = ListenOptions::new("0.0.0.0", 0);
        let listener = plane
            .listen::<RecordBatch>(options, Bell::thread())
            .unwrap();
        child.say(host);
        child.say(listener.port());
        let mut receiver = listener.accept().unwrap();
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending, Ending::End);
        are_all(&batches, 10);
        let transports = (receiver.transport(), child.next("transport"));
        let shared = (Transport::Shared, Transport::Shared.to_string());
        assert_eq!(transports, shared, "by {host}");
    }
}

/// Edges that are closed give all back, though some of their batches are kept.
#[test]
fn b59_edges_that_are_opened_and_closed_leave_nothing() {
    let mut kept: Vec<RecordBatch> = Vec::new();
    let mut before = None;
    for round in 0..200 {
        let (mut sender, mut receiver) = SHARED.open::<RecordBatch>(EdgeOptions::named("edge"));
        sender.push(data(0..1_000)).unwrap();
        sender.finish().unwrap();
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending, Ending::End);
        if round < 10 {
            kept.extend(batches);
        } else if round == 10 {
            before = Some(held());
        }
    }
    let before = before.expect("there were so many rounds");
    until(LONG, "nothing is left", || {
        let now = held();
        now.0 <= before.0 && now.1 <= before.1
    });
    for batch in &kept {
        are_all(std::slice::from_ref(batch), 1_000);
    }
    let segments = held().1;
    drop(kept);
    until(LONG, "kept batches give their segments back", || {
        held().1 < segments
    });
}

/// No name of a segment is in a file system, so that none can stay there.
#[test]
fn b55_b57_nothing_of_an_edge_has_a_name_in_a_file_system() {
    let (_sender, _receiver) = SHARED.open::<RecordBatch>(EdgeOptions::named("edge"));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("/memfd:"));
    assert!(!maps.contains("/dev/shm/"), "{maps}");
}

/// Whether there are some or not.
#[test]
fn b60_huge_pages_that_are_asked_for_are_no_failure() {
    let edge = SharedEdge(SHARED.0.with(|remote| remote.shared.huge_pages = true));
    let (mut sender, mut receiver) = edge.open(EdgeOptions::named("edge"));
    let sending = thread::spawn(move || {
        for number in 0..2_000 {
            sender
                .push(data(number * 1_000..(number + 1) * 1_000))
                .unwrap();
        }
        sender.finish().unwrap();
    });
    let (batches, ending) = all(&mut receiver);
    sending.join().unwrap();
    assert_eq!(ending, Ending::End);
    are_all(&batches, 2_000_000);
}

#[test]
fn b69_an_idle_pair_that_waits_uses_next_to_no_time() {
    let (_empty_sender, mut receiver) = SHARED.open::<Numbers>(EdgeOptions::named("edge"));
    let edge = EdgeOptions::named("edge").capacity(1);
    let (mut sender, _full_receiver) = SHARED.open::<Numbers>(edge);
    sender.push(number(1)).unwrap();
    let time = Duration::from_secs(2);
    let spent = |wait: Box<dyn FnOnce() + Send>| {
        thread::spawn(move || {
            let before = thread_cpu_time();
            wait();
            thread_cpu_time() - before
        })
    };
    let popping = spent(Box::new(move || {
        assert_eq!(receiver.pop_timeout(time), Popped::Empty);
    }));
    let pushing = spent(Box::new(move || {
        let rejected = sender.push_timeout(number(2), time).unwrap_err();
        assert_eq!(rejected.reason, RejectReason::Full);
    }));
    let spent = popping.join().unwrap() + pushing.join().unwrap();
    assert!(spent < time / 50, "{spent:?} of CPU time in {time:?}");
}

/// In two processes, as in one.
#[test]
fn b69_processes_on_one_cpu_get_along_and_use_next_to_no_time_when_idle() {
    const TEST: &str =
        "scenarios::b69_processes_on_one_cpu_get_along_and_use_next_to_no_time_when_idle";
    const IDLE: Duration = Duration::from_secs(2);
    const COUNT: i64 = 2_000;
    // What its own threads use while nothing comes, and nothing goes.
    let idle = || {
        let before = process_cpu_time();
        thread::sleep(IDLE);
        process_cpu_time() - before
    };
    let narrow = || EdgeOptions::named("edge").capacity(1);
    if part().is_some() {
        pin_to_one_cpu();
        let port = hear().unwrap().parse().unwrap();
        let out = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut sender: Sender<Numbers> = SHARED.0.sender(out, &narrow());
        for value in 0..COUNT {
            sender.push(number(value)).unwrap();
        }
        until(LONG, "all are taken", || sender.is_empty());
        tell("idle_ns", idle().as_nanos());
        sender.push(number(COUNT)).unwrap();
        return sender.finish_and_wait(LONG).unwrap();
    }
    let mut child = Process::start(TEST, "sends");
    let took = thread::spawn(move || {
        pin_to_one_cpu();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        child.say(listener.local_addr().unwrap().port());
        let back = listener.accept().unwrap().0;
        let mut receiver: Receiver<Numbers> = SHARED.0.receiver(back, &narrow());
        let began = Instant::now();
        let mut took = Duration::ZERO;
        for value in 0..=COUNT {
            assert_eq!(next(&mut receiver), number(value));
            if value + 1 == COUNT {
                took = began.elapsed();
            }
        }
        assert_eq!(receiver.transport(), Transport::Shared);
        assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
        let idle = Duration::from_nanos(child.number("idle_ns"));
        assert!(idle < IDLE / 50, "{idle:?} of CPU time in {IDLE:?}");
        took
    });
    let took = took.join().unwrap();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Producer and consumer on one CPU don't spin against each other.
#[test]
fn b69_both_ends_on_one_cpu_with_room_for_one_element_get_along() {
    let (began, cpu) = (Instant::now(), process_cpu_time());
    let count = 2_000;
    let taken = thread::spawn(move || {
        pin_to_one_cpu();
        let edge = EdgeOptions::named("edge").capacity(1);
        let (mut sender, mut receiver) = SHARED.open::<Numbers>(edge);
        let sending = thread::spawn(move || {
            for value in 0..count {
                sender.push(number(value)).unwrap();
            }
            sender.finish().unwrap();
        });
        let mut taken = 0;
        while let Popped::Element(element) = receiver.pop() {
            assert_eq!(element, number(taken));
            taken += 1;
        }
        sending.join().unwrap();
        taken
    });
    assert_eq!(taken.join().unwrap(), count);
    let (took, spent) = (began.elapsed(), process_cpu_time() - cpu);
    assert!(took < Duration::from_secs(20), "{took:?}, {spent:?} of CPU");
}

fn pin_to_one_cpu() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    let mut one = rustix::thread::CpuSet::new();
    one.set(cpu.expect("there is a CPU"));
    rustix::thread::sched_setaffinity(None, &one).unwrap();
}

fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
