//! Where rows belong: hashes of keys, the subtasks that have them, and windows.

use std::hint::black_box;

use arrow::array::RecordBatch;
use gungraun::prelude::*;
use ringway::column::{KeyColumns, event_times, split_by_target};
use ringway::operators::window::WindowAssigner;
use ringway::partition::Parallelism;

use crate::rows::batch;

const SUBTASKS: u32 = 4;

/// Columns of [`batch`].
const KEY: usize = 1;
const TEXT: usize = 3;

fn keyed(columns: &[usize]) -> (KeyColumns, RecordBatch) {
    let batch = batch(1024);
    let keys = KeyColumns::bind(&batch.schema(), columns);
    (keys.expect("a key may be of these types"), batch)
}

#[library_benchmark]
#[bench::int64(keyed(&[KEY]))]
#[bench::text(keyed(&[TEXT]))]
#[bench::text_and_int64(keyed(&[TEXT, KEY]))]
pub(crate) fn key_hash(
    (mut keys, batch): (KeyColumns, RecordBatch),
) -> (KeyColumns, RecordBatch, u64) {
    let hashes = keys.hashes(black_box(&batch));
    let hashes = hashes.expect("the batch has the columns of the key");
    let sum = hashes
        .iter()
        .fold(0_u64, |sum, hash| sum.wrapping_add(*hash));
    (keys, batch, sum)
}

#[library_benchmark]
#[bench::rows_1024(keyed(&[KEY]))]
pub(crate) fn partition(
    (mut keys, batch): (KeyColumns, RecordBatch),
) -> (KeyColumns, RecordBatch, Vec<Option<RecordBatch>>) {
    let parallelism = Parallelism::new(SUBTASKS).expect("so many are allowed");
    let targets = keys.targets(black_box(&batch), parallelism);
    let targets = targets.expect("the batch has the columns of the key");
    let parts = split_by_target(&batch, targets, SUBTASKS as usize);
    (keys, batch, parts.expect("each row has a target"))
}

fn windows(size_ms: i64, slide_ms: i64) -> (WindowAssigner, RecordBatch) {
    let assigner = WindowAssigner::sliding(size_ms, slide_ms, 0);
    (assigner.expect("such windows are allowed"), batch(1024))
}

#[library_benchmark]
#[bench::tumbling(windows(1000, 1000))]
#[bench::sliding(windows(1000, 250))]
pub(crate) fn window_assign(
    (assigner, batch): (WindowAssigner, RecordBatch),
) -> (RecordBatch, i64) {
    let times = event_times(black_box(&batch)).expect("its first column is the event time");
    let windows = times
        .values()
        .iter()
        .flat_map(|time| assigner.windows_of(*time));
    let starts = windows.fold(0_i64, |sum, window| sum.wrapping_add(window.start()));
    (batch, starts)
}
