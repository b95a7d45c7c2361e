//! Failures that others met with memory that processes share. Segments that are cut, and huge
//! pages that are not there, are also in the suites of `shm`.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use ringway::clock::process_cpu_time;
use ringway::edge::{EdgeOptions, Ending, Popped, RejectReason};
use ringway::element::{Drain, StreamElement};
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::elements::{Numbers, barrier, next, number, watermark};
use ringway_tests::conformance::subjects::{SHARED, SharedEdge};
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
