//! B27: slices of large columns, which are as heavy as what they hold.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeListArray, LargeListArray, ListArray, StringArray, StringViewArray,
    StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use ringway::edge::EdgeOptions;

use super::{batch, receive, send, texts};
use crate::columns::columns;
use crate::conformance::EdgeSubject;
use crate::conformance::elements::room_for;
use crate::within::{LONG, until};

/// Rows of a slice, and slices.
const ROWS: usize = 10;
const SLICES: usize = 100;

/// Text of every value.
const VALUE_BYTES: usize = 100;

fn strings(rows: usize) -> impl Iterator<Item = String> {
    (0..rows).map(|row| format!("{row:>VALUE_BYTES$}"))
}

/// A column of `rows` texts of 100 bytes in each layout that holds them.
fn layouts(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let strings: StringArray = strings(rows).map(Some).collect();
    let views: StringViewArray = strings.iter().collect();
    let items: ArrayRef = Arc::new(strings);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let offsets = OffsetBuffer::from_lengths(vec![1; rows]);
    let large = OffsetBuffer::from_lengths(vec![1; rows]);
    let lists = ListArray::new(Arc::clone(&item), offsets, Arc::clone(&items), None);
    let large = LargeListArray::new(Arc::clone(&item), large, Arc::clone(&items), None);
    let fixed = FixedSizeListArray::new(Arc::clone(&item), 1, Arc::clone(&items), None);
    let record = StructArray::new(vec![item].into(), vec![Arc::clone(&items)], None);
    vec![
        ("text", items),
        ("views", Arc::new(views.clone())),
        ("binary views", Arc::new(views.to_binary_view())),
        ("lists", Arc::new(lists)),
        ("large lists", Arc::new(large)),
        ("fixed lists", Arc::new(fixed)),
        ("records", Arc::new(record)),
    ]
}

/// A hundred slices of ten rows are counted as the 100 KB that they hold, at most twice; and so
/// many are sent, where they are.
pub fn b27_slices_of_a_large_column_count_what_they_hold<S: EdgeSubject>(subject: &S) {
    let held = (SLICES * ROWS * VALUE_BYTES) as u64;
    for (layout, column) in layouts(100_000) {
        let (mut sender, mut receiver) = subject.open(EdgeOptions::named("edge"));
        let whole = batch(vec![column]);
        for slice in 0..SLICES {
            send(&mut sender, &whole.slice(slice * 1_000, ROWS));
        }
        let counted = sender.metrics().bytes;
        assert!(
            (held..2 * held).contains(&counted),
            "{layout}: {held} bytes are counted as {counted}"
        );
        for slice in 0..SLICES {
            let expected = whole.column(0).slice(slice * 1_000, ROWS);
            assert_eq!(texts(receive(&mut receiver).column(0)), texts(&expected));
        }
        if sender.remote_stats().is_some() {
            let sent = || sender.remote_stats().map_or(0, |stats| stats.wire_bytes);
            // It is told a little later.
            until(LONG, "the bytes are told", || sent() >= held);
            assert!(
                sent() < 2 * held,
                "{layout}: {held} are {} on the wire",
                sent()
            );
        }
    }
}

/// Of a million rows, on an edge whose bound is twice what the slices hold.
pub fn b27_a_hundred_small_slices_fit_where_their_rows_fit<S: EdgeSubject>(subject: &S) {
    let column: StringArray = strings(1_000_000).map(Some).collect();
    let whole = batch(vec![Arc::new(column)]);
    let options = EdgeOptions::named("edge").bytes(2 * SLICES * ROWS * VALUE_BYTES);
    let (mut sender, mut receiver) = subject.open(options);
    for slice in 0..SLICES {
        send(&mut sender, &whole.slice(slice * 10_000, ROWS));
    }
    for slice in 0..SLICES {
        let arrived = receive(&mut receiver);
        let first = format!("{:>VALUE_BYTES$}", slice * 10_000);
        assert_eq!(arrived.num_rows(), ROWS);
        assert_eq!(texts(arrived.column(0))[0], first);
    }
}

/// In the middle of a run, at an odd bit, at an offset of a list, of a slice.
pub fn b27_slices_of_every_layout_arrive_as_they_are<S: EdgeSubject>(subject: &S) {
    for (name, column) in columns() {
        let (mut sender, mut receiver) = subject.open(room_for(8));
        let whole = batch(vec![column]);
        let slices =
            [(3, 2), (0, 0), (11, 1), (1, 10)].map(|(start, rows)| whole.slice(start, rows));
        let of_slice = slices[3].slice(2, 5);
        for slice in slices.iter().chain([&of_slice]) {
            send(&mut sender, slice);
            let arrived = receive(&mut receiver);
            assert_eq!(arrived.schema(), slice.schema(), "{name}");
            assert_eq!(texts(arrived.column(0)), texts(slice.column(0)), "{name}");
        }
    }
}
