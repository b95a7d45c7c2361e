//! Failures that others met with record batches on their channels, played on any edge.
//!
//! One function a scenario, its name begins with the scenario's number. To run all of them
//! against a subject:
//!
//! ```text
//! ringway_tests::edge_scenarios!(local = LocalEdge);
//! ```

pub mod dictionaries;
pub mod rows_alone;
pub mod schemas;
pub mod slices;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ringway::edge::{Receiver, Sender};
use ringway::element::StreamElement;

use crate::conformance::elements::{next, push};
use crate::within::{LONG, until};

/// The source text of every group of scenarios.
const GROUPS: &[&str] = &[
    include_str!("dictionaries.rs"),
    include_str!("rows_alone.rs"),
    include_str!("schemas.rs"),
    include_str!("slices.rs"),
];

/// How many scenarios the groups hold, so that none is written and never run.
pub fn scenarios_written() -> usize {
    let scenarios = |text: &&str| text.matches("\npub fn b").count();
    GROUPS.iter().map(scenarios).sum()
}

/// A batch of these columns, named `a`, `b`, ... and nullable.
fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let field = |(name, column): (char, &ArrayRef)| {
        Field::new(name.to_string(), column.data_type().clone(), true)
    };
    let fields: Vec<Field> = ('a'..).zip(&columns).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of one length")
}

#[track_caller]
fn send(sender: &mut Sender<RecordBatch>, batch: &RecordBatch) {
    push(sender, StreamElement::Data(batch.clone()));
}

#[track_caller]
fn receive(receiver: &mut Receiver<RecordBatch>) -> RecordBatch {
    match next(receiver) {
        StreamElement::Data(batch) => batch,
        other => panic!("data, not {other:?}"),
    }
}

/// Waits until so many batches are queued at the receiver. What is still at the sender, the
/// barrier of an unaligned checkpoint does not overtake on every edge.
fn arrived(receiver: &Receiver<RecordBatch>, batches: usize) {
    until(LONG, "batches arrive", || receiver.len() == batches);
}

/// The batches that a barrier has overtaken, which may still be on its way.
fn overtaken(receiver: &mut Receiver<RecordBatch>) -> Vec<RecordBatch> {
    until(LONG, "the barrier overtakes", || receiver.has_priority());
    let (_, position) = receiver.poll_priority().expect("it is there");
    let mut batches = Vec::new();
    receiver.peek_until(position, |element| match element {
        StreamElement::Data(batch) => batches.push(batch.clone()),
        other => panic!("data, not {other:?}"),
    });
    batches
}

/// The values of a column as text, whatever its layout.
fn texts(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(column, &options).expect("every type has a text");
    let text = |row| formatter.value(row).to_string();
    (0..column.len()).map(text).collect()
}

/// Makes a module of tests, one for each scenario, that play them on a subject.
#[macro_export]
macro_rules! edge_scenarios {
    ($module:ident = $subject:expr) => {
        $crate::edge_scenarios! { @scenarios $module, $subject;
            rows_alone {
                b23_a_batch_without_columns_has_its_rows_behind_the_edge
                b23_rows_that_no_column_holds_are_counted_exactly_or_refused
                b23_rows_without_columns_are_in_flight_under_a_barrier_that_overtakes
            }
            dictionaries {
                b25_a_batch_that_is_kept_is_not_changed_by_the_next_dictionary
                b25_a_dictionary_that_grows_gives_the_right_values
                b25_columns_that_share_a_dictionary_may_part
                b25_a_second_receiver_gets_the_right_values
                b25_the_next_edge_needs_nothing_of_one_that_was_lost
                b25_a_dictionary_inside_of_a_list_is_replaced_too
                b25_dictionaries_that_a_barrier_overtakes_are_peeked_as_they_are
            }
            slices {
                b27_slices_of_a_large_column_count_what_they_hold
                b27_a_hundred_small_slices_fit_where_their_rows_fit
                b27_slices_of_every_layout_arrive_as_they_are
            }
            schemas {
                b29_metadata_of_schema_and_fields_arrives
                b29_columns_of_one_name_and_of_none_are_told_apart_by_position
                b29_twenty_thousand_pairs_of_metadata_arrive
                b29_the_same_schema_twice_is_one_schema
                b29_a_batch_of_another_schema_is_never_read_with_the_first
            }
        }
    };
    (@scenarios $module:ident, $subject:expr; $($group:ident { $($scenario:ident)+ })+) => {
        mod $module {
            use super::*;
            $($(
                #[test]
                fn $scenario() {
                    $crate::conformance::check(
                        &$subject,
                        |subject| $crate::scenarios::$group::$scenario(subject),
                    );
                }
            )+)+

            #[test]
            fn no_scenario_is_left_out() {
                let listed = [$($(stringify!($scenario)),+),+].len();
                assert_eq!(listed, $crate::scenarios::scenarios_written());
            }
        }
    };
}
