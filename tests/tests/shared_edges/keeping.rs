//! Batches that their receiver keeps.

use std::thread;

use ringway::edge::Ending;

use crate::rig::{SEGMENT_BYTES, all, are_all, data, open};

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
