//! Record batches that are easy to damage, through columnar operators and every exchange.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};

use ringway::connect::{Collected, MemorySource};
use ringway::job::{BatchStream, Exchange, Job};
use ringway::operators::columnar::{Filter, Project, Split};
use ringway::output::ByKeyColumns;

use crate::parts::{How, subtasks};

fn zero_columns(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap()
}

fn source(job: &Job, batches: Vec<RecordBatch>) -> BatchStream {
    job.source("batches", move |_| {
        Ok(MemorySource::of_batches(batches.clone()))
    })
    .parallelism(subtasks(1))
}

/// Keeps the rows whose position in their batch `keep` is satisfied with.
fn keep(stream: BatchStream, keep: fn(usize) -> bool) -> BatchStream {
    stream.process("filter", move |_| {
        Ok(Filter::new(Box::new(move |batch: &RecordBatch| {
            Ok((0..batch.num_rows())
                .map(|row| Some(keep(row)))
                .collect::<BooleanArray>())
        })))
    })
}

fn rows(collected: &Collected<RecordBatch>) -> usize {
    collected.batches().iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn b23_batches_without_columns_keep_their_rows_through_operators_and_exchanges() {
    let job = Job::new("no columns");
    let [all, kept, others, everyone] = [(); 4].map(|()| Collected::new());
    let stream = source(&job, vec![zero_columns(5), zero_columns(0)]);
    let stream = keep_all(stream).process("project", |_| {
        Ok(Project::new(Box::new(|batch: &RecordBatch| {
            Ok(batch.clone())
        })))
    });
    stream.clone().rebalance().sink("all", all.sink());
    stream.broadcast().sink("everyone", everyone.sink());
    let (first, second) =
        source(&job, vec![zero_columns(5)]).process_with_side("split", |_, side| {
            let three = |batch: &RecordBatch| {
                Ok((0..batch.num_rows())
                    .map(|row| Some(row < 3))
                    .collect::<BooleanArray>())
            };
            Ok(Split::new(Box::new(three), side))
        });
    first.sink("kept", kept.sink());
    second.rebalance().sink("others", others.sink());
    How {
        parallelism: 2,
        ..How::workers(2)
    }
    .run(job);
    assert_eq!(rows(&all), 5);
    assert_eq!(rows(&everyone), 10);
    assert_eq!((rows(&kept), rows(&others)), (3, 2));
}

fn keep_all(stream: BatchStream) -> BatchStream {
    keep(stream, |_| true)
}

/// Two columns of one name beside the event time, with metadata everywhere.
fn duplicate_names() -> RecordBatch {
    let pairs = |key: &str| {
        HashMap::from([
            (key.to_owned(), "t1".to_owned()),
            (String::new(), String::new()),
        ])
    };
    let same = Field::new("same", DataType::Int64, true);
    let schema = Schema::new_with_metadata(
        vec![
            Field::new("event_time", DataType::Int64, true),
            same.clone().with_metadata(pairs("first")),
            same.with_metadata(pairs("second")),
            Field::new("", DataType::Int64, false),
        ],
        pairs("origin"),
    );
    let column = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let columns = vec![
        column([0, 1]),
        column([1, 2]),
        column([3, 4]),
        column([5, 6]),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[test]
fn b29_metadata_and_columns_of_one_name_survive_every_operator_and_exchange() {
    let batch = duplicate_names();
    let schema = batch.schema();
    let job = Job::new("duplicate names");
    let [keyed, everyone, side] = [(); 3].map(|()| Collected::new());
    let by_second = {
        let schema = schema.clone();
        Exchange::key::<RecordBatch>(move || Box::new(ByKeyColumns::bind(&schema, &[2]).unwrap()))
    };
    let stream = keep_all(source(&job, vec![batch.clone(); 50]));
    let pass = |stream: BatchStream, name: &str| {
        stream.process(name, |_| {
            Ok(Project::new(Box::new(|batch: &RecordBatch| {
                Ok(batch.clone())
            })))
        })
    };
    pass(stream.clone().exchange(by_second), "keyed").sink("keyed", keyed.sink());
    pass(stream.clone().broadcast(), "everyone").sink("everyone", everyone.sink());
    let (main, others) = stream.process_with_side("split", |_, side| {
        let small = |batch: &RecordBatch| {
            let values = batch.column(2).as_primitive::<Int64Type>();
            Ok(BooleanArray::from_unary(values, |value| value < 4))
        };
        Ok(Split::new(Box::new(small), side))
    });
    main.union(others).rebalance().sink("side", side.sink());
    How {
        parallelism: 3,
        capacity: 1,
        ..How::workers(2)
    }
    .run(job);
    for (collected, copies) in [(&keyed, 1), (&everyone, 3), (&side, 1)] {
        let batches = collected.batches();
        assert!(
            batches.iter().all(|batch| batch.schema() == schema),
            "metadata is kept"
        );
        let all = concat_batches(&schema, &batches).unwrap();
        assert_eq!(all.num_rows(), 100 * copies);
        let column = |at: usize| all.column(at).as_primitive::<Int64Type>().values().to_vec();
        let firsts = column(1);
        for (at, shift) in [(0, -1), (2, 2), (3, 4)] {
            let expected: Vec<i64> = firsts.iter().map(|first| first + shift).collect();
            assert_eq!(column(at), expected, "column {at} by position");
        }
    }
}
