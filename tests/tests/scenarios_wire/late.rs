//! B14, with receivers that are late: what was sent before an end stays until it is read.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::StreamReader;
use ringway::edge::{EdgeOptions, Ending, Popped};
use ringway_tests::conformance::elements::{next, number};
use ringway_tests::sockets::{CLOSE, pair};
use ringway_tests::within::LONG;

use crate::rig::{on_all_at_once, open};

/// Long after a sender that waits for nobody is gone.
const LATE: Duration = Duration::from_secs(2);

/// A grant of version 1.
fn grant(rows: u32) -> Vec<u8> {
    [&[0, 0, 0, 5, 4][..], &rows.to_be_bytes()].concat()
}

/// The values of batches in the form of version 1.
fn values_of(mut frames: &[u8]) -> impl Iterator<Item = i64> {
    let mut values = Vec::new();
    while let Some((head, rest)) = frames.split_first_chunk() {
        let [a, b, c, d, 7] = *head else {
            panic!("another frame than a batch");
        };
        let bytes = u32::from_be_bytes([a, b, c, d]) as usize - 1;
        let (body, behind) = rest.split_at(bytes);
        for batch in StreamReader::try_new(body, None).unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("value").unwrap();
            values.extend(column.as_primitive::<Int64Type>().values());
        }
        frames = behind;
    }
    values.into_iter()
}

#[test]
fn b14_a_peer_of_version_1_that_reads_long_after_the_end_gets_every_row_and_then_the_end() {
    on_all_at_once(|edge| {
        // What the kernels hold, and what they don't.
        let begun = [10, 20_000].map(|rows| {
            let (out, mut back) = pair();
            let mut sender = edge.sender(out, &EdgeOptions::named("edge"));
            back.write_all(&grant(rows)).unwrap();
            let sending = thread::spawn(move || {
                for row in 0..rows {
                    sender.push(number(row.into())).unwrap();
                }
                sender.finish().unwrap();
            });
            (rows, back, sending)
        });
        thread::sleep(LATE);
        for (rows, mut back, sending) in begun {
            // It comes when nobody may be there any more who could use it.
            back.write_all(&grant(1)).unwrap();
            back.set_read_timeout(Some(LONG)).unwrap();
            let mut bytes = Vec::new();
            back.read_to_end(&mut bytes).unwrap();
            sending.join().unwrap();
            let frames = bytes.strip_suffix(&CLOSE).expect("the end comes last");
            assert!(values_of(frames).eq(0..rows.into()), "of {rows} rows");
        }
    });
}

#[test]
fn b14_a_receiver_that_is_asked_for_rows_long_after_the_end_has_every_row_and_then_the_end() {
    const ROWS: i64 = 200;
    on_all_at_once(|edge| {
        let (mut sender, mut receiver) = open(edge, &EdgeOptions::named("edge"));
        for row in 0..ROWS {
            sender.push(number(row)).unwrap();
        }
        sender.finish().unwrap();
        thread::sleep(LATE);
        for row in 0..ROWS {
            assert_eq!(next(&mut receiver), number(row));
        }
        assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
    });
}
