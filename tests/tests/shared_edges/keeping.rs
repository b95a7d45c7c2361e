//! Batches that their receiver keeps.

use std::{fs, thread};

use ringway::edge::{EdgeOptions, Ending};
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::{SHARED, SHARED_COPIED};

use crate::rig::{SEGMENT_BYTES, all, are_all, data, open, values};

/// Rows of a batch of 8 KiB.
const ROWS: i64 = 1024;

/// A window or a join does so: what it keeps holds room in the segment, and must not end up with
/// all of it.
#[test]
fn every_batch_of_ten_times_the_segment_can_be_kept() {
    let (mut sender, mut receiver) = open();
    let batches = (10 * SEGMENT_BYTES) as i64 / (8 * ROWS);
    let sending = thread::spawn(move || {
        for number in 0..batches {
            sender
                .push(data(number * ROWS..(number + 1) * ROWS))
                .unwrap();
        }
        sender.finish().unwrap();
    });
    let (kept, ending) = all(&mut receiver);
    sending.join().unwrap();
    assert_eq!((kept.len() as i64, ending), (batches, Ending::End));
    let copied = receiver.remote_stats().unwrap().copied_bytes as usize;
    let total = 10 * SEGMENT_BYTES;
    assert!(
        copied > total / 2 && copied < total,
        "{copied} of {total} bytes were copied"
    );
    drop(receiver);
    are_all(&kept, batches * ROWS);
}

/// Batches that are dropped at once are never copied.
#[test]
fn batches_that_nobody_keeps_are_used_where_they_lie() {
    let (mut sender, mut receiver) = open();
    for number in 0..500 {
        sender.push(data(number..number + ROWS)).unwrap();
        let popped = receiver.pop();
        assert!(matches!(popped, ringway::edge::Popped::Element(_)));
    }
    assert_eq!(receiver.remote_stats().unwrap().copied_bytes, 0);
}

/// Whether it lies in a segment.
fn is_mapped(numbers: &[i64]) -> bool {
    let at = numbers.as_ptr().addr();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let segments = maps.lines().filter(|line| line.contains("/memfd:ringway"));
    let hex = |text| usize::from_str_radix(text, 16).unwrap();
    segments
        .filter_map(|line| line.split_once(' ')?.0.split_once('-'))
        .any(|(from, to)| (hex(from)..hex(to)).contains(&at))
}

/// Its sender may be of another user, who could change what was taken.
#[test]
fn a_receiver_that_copies_takes_nothing_that_lies_in_the_segment() {
    for (edge, lies_there) in [(&*SHARED, true), (&*SHARED_COPIED, false)] {
        let (mut sender, mut receiver) = edge.open(EdgeOptions::named("edge"));
        sender.push(data(0..ROWS)).unwrap();
        sender.finish().unwrap();
        let (batches, ending) = all(&mut receiver);
        assert_eq!(ending, Ending::End);
        are_all(&batches, ROWS);
        assert_eq!(
            is_mapped(values(&batches[0])),
            lies_there,
            "{}",
            edge.name()
        );
    }
}
