//! Columns that nobody has to look at pass through everything, whatever their type.
//!
//! Goal: for every type that Arrow has, each operator, exchange, edge form and sink that carries
//! columns gives the values, fields and metadata that it was given.
//! Method: one table of columns, one table of ways; every column goes every way, whole and as a
//! slice, between two columns of the same name. Values are compared as text, since dictionaries,
//! runs and views may be laid out anew; types and fields are compared as they are.

mod batches;
mod compared;
mod edges;
mod exchanges;
mod files;
mod jobs;
mod joins;
mod operators;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use batches::input;
use compared::{Arrived, differences};
use ringway_tests::columns::columns;

/// A way through something, and what comes out of it.
struct Way {
    name: &'static str,
    go: fn(&batches::Input) -> Result<Arrived, String>,
}

/// How an error begins that a plan gave, before anything ran.
const REFUSED: &str = "refused: ";

/// Sends every column every way, and tells of all that did not arrive.
fn all_go(ways: &[Way]) {
    all_go_but(&[], ways);
}

/// As [`all_go`], where the plan refuses the columns whose type is named with one of these.
fn all_go_but(unfit: &[&str], ways: &[Way]) {
    let mut found = Vec::new();
    for (name, column) in columns() {
        let is_unfit = unfit.iter().any(|unfit| name.contains(unfit));
        for sliced in [false, true] {
            let input = input(&column, sliced);
            for way in ways {
                let shape = if sliced { "a slice of " } else { "" };
                let tell = |what: String| format!("{}: {shape}{name}: {what}", way.name);
                match (way.go)(&input) {
                    Err(error) if is_unfit && error.starts_with(REFUSED) => {
                        if !error.contains("column 4 `same`") {
                            found.push(tell(format!("does not name the column: {error}")));
                        }
                    }
                    Ok(_) if is_unfit => found.push(tell("was to be refused".into())),
                    Ok(arrived) => found.extend(differences(&input, &arrived).map(tell)),
                    Err(error) => found.push(tell(error)),
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} findings:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_edge_form_gives_every_column_as_it_was() {
    all_go(edges::WAYS);
}

#[test]
fn every_operator_passes_on_the_columns_that_it_does_not_look_at() {
    all_go(operators::WAYS);
}

#[test]
fn every_exchange_passes_on_every_column() {
    all_go(exchanges::WAYS);
}

#[test]
fn joins_give_the_columns_of_both_sides() {
    all_go(joins::WAYS);
}

#[test]
fn arrow_files_and_streams_hold_every_column() {
    all_go(files::ARROW);
}

#[test]
fn parquet_files_hold_every_column_or_the_plan_says_which_they_cannot() {
    let unfit = [
        "Union(",
        "Interval(MonthDayNano)",
        "Decimal64(15, -1)",
        "Dictionary(UInt16, Decimal128",
        "Dictionary(UInt16, FixedSizeBinary",
        "Dictionary(UInt16, Utf8View",
    ];
    all_go_but(&unfit, files::PARQUET);
}

/// Shows that the comparison can fail.
#[test]
fn a_column_that_is_not_as_it_was_is_found() {
    let columns = columns();
    let (one, other) = (input(&columns[1].1, false), input(&columns[2].1, false));
    let found = |batches, ids: Vec<i64>| differences(&one, &Arrived::of(batches, ids)).count();
    assert_eq!(found(one.batches.clone(), one.ids()), 0);
    assert!(found(other.batches.clone(), one.ids()) > 0, "another type");
    assert!(
        found(one.batches[..1].to_vec(), one.ids()) > 0,
        "rows are missing"
    );
    let twice = [one.batches.clone(), one.batches.clone()].concat();
    assert!(found(twice, one.ids()) > 0, "rows come twice");
    let bare = Arc::new(Schema::new(one.schema.fields().clone()));
    let bare = |batch: &RecordBatch| {
        RecordBatch::try_new(Arc::clone(&bare), batch.columns().to_vec()).unwrap()
    };
    let bare = one.batches.iter().map(bare).collect();
    assert!(found(bare, one.ids()) > 0, "no metadata");
}
