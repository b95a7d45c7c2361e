//! Sources that make their rows.

use std::collections::BTreeSet;

use super::*;
use crate::connect::{MemorySource, NexmarkKind, nexmark_batches, nexmark_schema};

#[test]
fn generated_rows_are_the_same_at_any_parallelism_batch_size_and_rate() {
    let base = "rows = 10007\nseed = 7\njitter_ms = 50\nstep_ms = 3\nkeys = 10";
    let first = source("generator", base, Path::new("."));
    let expected = sum(&run_all(&*first, 1));
    for (parallelism, more) in [(3, ""), (4, "batch_rows = 10"), (2, "rate = 100000")] {
        let connector = source("generator", &format!("{base}\n{more}"), Path::new("."));
        let elements = run_all(&*connector, parallelism);
        for index in 0..parallelism {
            let alone = Stepped::open(&*connector, index, parallelism).run();
            assert_watermarks_hold(&alone.unwrap());
        }
        assert_eq!(rows(&elements), 10_007);
        assert_eq!(sum(&elements), expected);
        assert_eq!(connector.stats().read().rows, 2 * 10_007);
    }
    let other = source(
        "generator",
        &format!("{base}\n").replace("7\nj", "8\nj"),
        Path::new("."),
    );
    assert_ne!(sum(&run_all(&*other, 1)), expected);
}

#[test]
fn generated_rows_have_the_columns_that_are_documented() {
    let options = "rows = 1000\nstart_ms = 500\nstep_ms = 10\nkeys = 7\njitter_ms = 100";
    let connector = source("generator", options, Path::new("."));
    for index in 0..2 {
        let elements = Stepped::open(&*connector, index, 2).run().unwrap();
        assert_watermarks_hold(&elements);
        let batch = batches(&elements)[0];
        let (times, ids) = (ints(batch, 0), ints(batch, 1));
        for (time, id) in times.iter().zip(&ids) {
            let turn = 500 + 10 * id.unwrap();
            assert!((turn - 100..=turn).contains(&time.unwrap()));
        }
        assert!(ids.is_sorted());
        let keys: BTreeSet<_> = ints(batch, 2).into_iter().flatten().collect();
        assert!(keys.iter().eq(&(0..7).collect::<Vec<_>>()));
        assert!(!times.is_sorted(), "jitter puts rows out of order");
    }
}

#[test]
fn the_rate_is_kept_and_the_next_time_is_told() {
    let connector = source("generator", "rate = 100", Path::new("."));
    let mut stepped = Stepped::open(&*connector, 0, 1);
    let start = stepped.now;
    assert_eq!(stepped.poll().unwrap(), SourceProgress::Ready);
    assert_eq!(
        stepped.poll().unwrap(),
        SourceProgress::Pending(Some(start + 10))
    );
    stepped.now = start + 1000;
    assert_eq!(stepped.poll().unwrap(), SourceProgress::Ready);
    assert_eq!(rows(&stepped.taken.elements), 101);
}

#[test]
fn nexmark_events_are_the_same_at_any_parallelism() {
    for (kind, name) in [
        (NexmarkKind::Bid, "bid"),
        (NexmarkKind::Auction, "auction"),
        (NexmarkKind::Person, "person"),
        (NexmarkKind::All, "all"),
    ] {
        let prebuilt = nexmark_batches(kind, 1001, 100);
        assert_eq!(prebuilt.len(), 11);
        let expected = prebuilt
            .iter()
            .fold(0u64, |sum, batch| sum.wrapping_add(checksum(batch)));
        for parallelism in [1, 3] {
            let options = format!("events = '{name}'\nrows = 1001\nbatch_rows = 64");
            let connector = source("nexmark", &options, Path::new("."));
            assert_eq!(connector.schema(), nexmark_schema(kind));
            let elements = run_all(&*connector, parallelism);
            assert_eq!((rows(&elements), sum(&elements)), (1001, expected));
            let alone = Stepped::open(&*connector, 0, parallelism).run().unwrap();
            assert_watermarks_hold(&alone);
        }
    }
}

#[test]
fn all_nexmark_events_have_the_columns_of_their_kind_only() {
    let batch = &nexmark_batches(NexmarkKind::All, 50, 50)[0];
    let present = |name: &str| {
        let column = batch.column_by_name(name).unwrap();
        column.len() - column.null_count()
    };
    assert_eq!(present("kind"), 50);
    assert_eq!(present("person_id"), 1);
    assert_eq!(present("auction_expires"), 3);
    assert_eq!(present("bid_price"), 46);
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    for (connector, options, name) in [
        ("generator", "keys = 0", "keys"),
        ("generator", "batch_rows = 0", "batch_rows"),
        ("nexmark", "batch_rows = 8193", "batch_rows"),
        ("nexmark", "events_per_second = 0", "events_per_second"),
    ] {
        let error = try_source(connector, options, Path::new("."))
            .err()
            .unwrap();
        let expected = format!("option `{name}`: must be");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[test]
fn a_source_in_memory_emits_what_it_was_given() {
    let batch = nexmark_batches(NexmarkKind::Bid, 10, 10).remove(0);
    let elements: Vec<Element> = (0..40)
        .flat_map(|time| {
            let watermark = StreamElement::Watermark(Watermark::active(time));
            [StreamElement::Data(batch.clone()), watermark]
        })
        .collect();
    let memory = MemorySource::new(elements.clone());
    let stepped = Stepped::of(Box::new(memory), &subtask(0, 1));
    assert_eq!(stepped.run().unwrap(), elements);
}
