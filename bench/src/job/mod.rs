//! Jobs: the whole runtime beside the same computation as a hand-written loop.
//!
//! Both take the same batches, prebuilt in memory, and end in the checksum over all rows and
//! columns of the result. With one worker a job is one chain on one core, as the loop is; with
//! two a source has a worker of its own, and every batch of it crosses an edge.

mod by_key;
mod data;
pub(crate) mod exchange;
mod flights;
mod memory;
mod nexmark;
mod nexmark_joins;
mod nexmark_windows;
mod runner;

use std::path::Path;

use ringway::job::BatchStream;

use crate::contest::{Contest, Harness, Measure};
use crate::error::BenchError;

pub(crate) use data::{data_folder, flights_file, read_parquet};
pub(crate) use flights::COLUMNS as FLIGHT_COLUMNS;
pub use memory::keep_freed_memory;

use data::Input;
use runner::{Outcome, Streams, Workers, run_job, run_loop};

/// Builds the operators of a job between its source and its sink.
pub(crate) type Operators = fn(Streams) -> Result<BatchStream, BenchError>;

/// A computation, said twice.
struct Query {
    name: &'static str,
    operators: Operators,
    /// The same by hand, over all batches; gives what the sink of the job counts.
    by_hand: fn(&Input) -> Outcome,
}

impl Query {
    fn case_name(&self, workers: Workers) -> String {
        format!("{}{}", self.name, workers.suffix())
    }
}

/// Makes the events that a query takes, few of them where only the results are checked.
type Events = fn(bool) -> Input;

const NEXMARK: [(Events, Query); 10] = [
    (
        data::bids,
        Query {
            name: "job/q0",
            operators: nexmark::q0,
            by_hand: nexmark::q0_by_hand,
        },
    ),
    (
        data::bids,
        Query {
            name: "job/q1",
            operators: nexmark::q1,
            by_hand: nexmark::q1_by_hand,
        },
    ),
    (
        data::bids,
        Query {
            name: "job/q2",
            operators: nexmark::q2,
            by_hand: nexmark::q2_by_hand,
        },
    ),
    (
        nexmark_joins::q3_events,
        Query {
            name: "job/q3",
            operators: nexmark_joins::q3,
            by_hand: nexmark_joins::q3_by_hand,
        },
    ),
    (
        nexmark_windows::q5_events,
        Query {
            name: "job/q5",
            operators: nexmark_windows::q5,
            by_hand: nexmark_windows::q5_by_hand,
        },
    ),
    (
        nexmark_windows::q7_events,
        Query {
            name: "job/q7",
            operators: nexmark_windows::q7,
            by_hand: nexmark_windows::q7_by_hand,
        },
    ),
    (
        nexmark_joins::q8_events,
        Query {
            name: "job/q8",
            operators: nexmark_joins::q8,
            by_hand: nexmark_joins::q8_by_hand,
        },
    ),
    (
        nexmark_windows::q11_events,
        Query {
            name: "job/q11",
            operators: nexmark_windows::q11,
            by_hand: nexmark_windows::q11_by_hand,
        },
    ),
    (
        nexmark_windows::q12_events,
        Query {
            name: "job/q12",
            operators: nexmark_windows::q12,
            by_hand: nexmark_windows::q12_by_hand,
        },
    ),
    (
        nexmark_joins::interval_join_events,
        Query {
            name: "job/interval_join",
            operators: nexmark_joins::interval_join,
            by_hand: nexmark_joins::interval_join_by_hand,
        },
    ),
];

const FLIGHTS: Query = Query {
    name: "job/flights",
    operators: flights::hourly,
    by_hand: flights::hourly_by_hand,
};

/// Measures all cases of `job`. `data` is the folder that has `flights.parquet`.
///
/// # Errors
/// When a job fails or its result differs from that of the loop, or the data can't be read.
pub(crate) fn measure(harness: &mut Harness, data: &Path) -> Result<(), BenchError> {
    let smoke = harness.settings.smoke;
    if is_wanted(harness, &FLIGHTS) {
        // It comes last, and what is missing is told before anything is measured.
        flights_file(data)?;
    }
    for (events, query) in &NEXMARK {
        if is_wanted(harness, query) {
            let name = query.name;
            harness.progress.say(format!("making the events of {name}"));
            compare(harness, query, &events(smoke))?;
        }
    }
    exchange::measure(harness)?;
    if is_wanted(harness, &FLIGHTS) {
        harness.progress.say("reading flights".to_owned());
        compare(harness, &FLIGHTS, &flights::input(data, smoke)?)?;
    }
    Ok(())
}

fn is_wanted(harness: &Harness, query: &Query) -> bool {
    let names = [Workers::One, Workers::Two].map(|workers| query.case_name(workers));
    names.iter().any(|name| harness.wants(name))
}

fn compare(harness: &mut Harness, query: &Query, input: &Input) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let expected = (query.by_hand)(input);
    if let Some(rows) = input.result_rows {
        expected.require_rows(rows)?;
    }
    for workers in [Workers::One, Workers::Two] {
        harness.measure(Contest {
            name: query.case_name(workers),
            unit: "rows/s",
            measure: Measure::Rate,
            baseline_name: "single-threaded loop",
            count: 1,
            ours: Box::new(|count| run_job(cpus, workers, input, query.operators, count, expected)),
            baseline: Box::new(|count| run_loop(cpus, input, query.by_hand, count, expected)),
        })?;
    }
    Ok(())
}
