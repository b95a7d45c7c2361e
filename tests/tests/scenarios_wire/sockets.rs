//! B26, B65, B66: where bytes lie in memory, waits that end, and sockets that take little.

use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow::array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::ipc::writer::StreamWriter;
use futures_util::future::join_all;
use ringway::edge::{EdgeOptions, Ending, Popped};
use ringway::element::StreamElement;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::elements::{
    Counted, counted, next, nobody_else_has, number, value_of,
};
use ringway_tests::seed::Seeded;
use ringway_tests::sockets::{CLOSE, frame, pair, recorded};
use ringway_tests::within::LONG;

use crate::rig::{each_until_the_end, on_all, open};

fn batch() -> RecordBatch {
    let decimals = Decimal128Array::from_iter_values((0..9).map(|n| n << 70));
    let texts = (0..9).map(|n| Some(format!("a text that is not inline, {n}")));
    let columns: [(&str, ArrayRef); 3] = [
        ("a", Arc::new(Int64Array::from_iter_values(0..9))),
        ("b", Arc::new(decimals)),
        ("c", Arc::new(texts.collect::<StringViewArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn stream_of(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn b26_bodies_at_any_offset_of_the_stream_are_whole_and_aligned() {
    const UNKNOWN_KIND: u8 = 99;
    let (sent, body) = (batch(), stream_of(&batch()));
    on_all(|edge| {
        for offset in 0..16_u32 {
            let mut bytes = Vec::from((offset + 1).to_be_bytes());
            bytes.push(UNKNOWN_KIND);
            bytes.resize(bytes.len() + offset as usize, 0);
            bytes.extend(frame(&body));
            bytes.extend(frame(&body));
            bytes.extend(CLOSE);
            let (mut out, back) = pair();
            let mut receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("edge"));
            out.write_all(&bytes).unwrap();
            out.shutdown(Shutdown::Write).unwrap();
            for _ in 0..2 {
                let StreamElement::Data(batch) = next(&mut receiver) else {
                    panic!("a batch comes");
                };
                assert_eq!(batch, sent, "behind {offset} bytes");
                let aligned = |column: &ArrayRef| column.to_data().buffers()[0].as_ptr().addr() % 8;
                assert!(batch.columns().iter().all(|column| aligned(column) == 0));
            }
            assert_eq!(receiver.pop_timeout(LONG), Popped::Ended(Ending::End));
        }
    });
}

#[test]
fn b65_waits_that_run_out_while_bytes_trickle_in_lose_none_of_them() {
    let bytes = [&frame(&recorded("ok_int_utf8"))[..], &CLOSE].concat();
    on_all(|edge| {
        let (mut out, back) = pair();
        let mut receiver = edge.receiver::<RecordBatch>(back, &EdgeOptions::named("edge"));
        let bytes = bytes.clone();
        let trickling = thread::spawn(move || {
            for byte in bytes {
                out.write_all(&[byte]).unwrap();
                thread::sleep(Duration::from_micros(300));
            }
            out.shutdown(Shutdown::Write).unwrap();
            out
        });
        let (mut rows, mut timeouts) = (0, 0);
        let since = Instant::now();
        let ending = loop {
            assert!(since.elapsed() < LONG, "it hangs");
            match receiver.pop_timeout(Duration::from_millis(1)) {
                Popped::Element(StreamElement::Data(batch)) => rows += batch.num_rows(),
                Popped::Element(other) => panic!("{other:?}"),
                Popped::Empty => timeouts += 1,
                Popped::Ended(ending) => break ending,
            }
        };
        assert_eq!((rows, ending), (3, Ending::End));
        assert!(timeouts > 0);
        trickling.join().unwrap();
    });
}

#[test]
fn b65_many_waits_that_run_out_at_once_all_return_and_nothing_is_lost_after_them() {
    const EDGES: i64 = 200;
    const WAIT: Duration = Duration::from_millis(50);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    on_all(|edge| {
        let options = EdgeOptions::named("edge");
        let (mut outs, mut ins): (Vec<_>, Vec<_>) =
            (0..EDGES).map(|_| open(edge, &options)).unzip();
        let start = Instant::now();
        let waits = |receivers: &mut [ringway::edge::Receiver<_>]| {
            runtime.block_on(async {
                let waits = receivers.iter_mut();
                let waits = waits.map(|one| tokio::time::timeout(WAIT, one.pop_async()));
                join_all(waits).await
            })
        };
        assert!(waits(&mut ins).into_iter().all(|popped| popped.is_err()));
        assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
        for (value, out) in outs.iter_mut().enumerate() {
            out.push(number(value as i64)).unwrap();
        }
        let sum: i64 = ins
            .iter_mut()
            .map(|receiver| value_of(next(receiver)))
            .sum();
        assert_eq!(sum, EDGES * (EDGES - 1) / 2);
    });
}

fn binary(value: u8, bytes: usize) -> RecordBatch {
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&vec![value; bytes]]));
    RecordBatch::try_from_iter([("a", column)]).unwrap()
}

#[test]
fn b66_large_and_small_batches_through_a_socket_that_takes_little_arrive_as_they_were() {
    const LARGE: u8 = 8;
    const SMALL: usize = 50;
    on_all(|edge| {
        // The kernel takes a few KiB at a time.
        let (mut sender, mut receiver) = edge.open::<RecordBatch>(EdgeOptions::named("edge"));
        let sending = thread::spawn(move || {
            for value in 0..LARGE {
                sender
                    .push(StreamElement::Data(binary(value, 1 << 20)))
                    .unwrap();
                for small in 0..SMALL {
                    let batch = binary(small as u8, 20);
                    sender.push(StreamElement::Data(batch)).unwrap();
                }
            }
            sender.finish().unwrap();
        });
        thread::sleep(Duration::from_millis(20));
        let mut arrived = Vec::new();
        let ending = each_until_the_end(&mut receiver, |element| match element {
            StreamElement::Data(batch) => {
                let column = batch.column(0).as_any().downcast_ref::<BinaryArray>();
                let value = column.unwrap().value(0);
                assert!(value.iter().all(|byte| *byte == value[0]));
                arrived.push((value[0], value.len()));
                if value.len() > 20 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(ending, Ending::End);
        let small = || (0..SMALL).map(|small| (small as u8, 20));
        let sent = (0..LARGE).flat_map(|large| [(large, 1 << 20)].into_iter().chain(small()));
        assert!(arrived.into_iter().eq(sent));
        sending.join().unwrap();
    });
}

#[test]
fn b66_nothing_is_left_of_connections_that_are_cut_while_they_are_full() {
    let mut random = Seeded::new();
    let mut delays: Vec<_> = (0..20).map(|_| random.below(2_000)).collect();
    delays.push(0);
    on_all(|edge| {
        let alive = Arc::new(());
        for delay in &delays {
            let (out, back) = pair();
            let cut = out.try_clone().unwrap();
            let options = EdgeOptions::named("edge").capacity(64);
            let mut sender = edge.sender(out, &options);
            let mut receiver = edge.receiver::<Counted>(back, &options);
            let element = counted(&alive);
            let sending = thread::spawn(move || {
                while sender.push_timeout(element.clone(), LONG).is_ok() {}
                drop(element);
                sender.finish_and_wait(LONG).unwrap_err();
            });
            thread::sleep(Duration::from_micros(*delay));
            cut.shutdown(Shutdown::Both).unwrap();
            sending.join().unwrap();
            loop {
                match receiver.pop_timeout(LONG) {
                    Popped::Element(_) => {}
                    Popped::Ended(ending) => {
                        assert!(matches!(ending, Ending::Failed(_)), "{ending}");
                        break;
                    }
                    Popped::Empty => panic!("it hangs"),
                }
            }
        }
        nobody_else_has(edge, &alive);
    });
}
