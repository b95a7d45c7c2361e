//! Engines: our keyed exchange between two workers beside timely's.
//!
//! Two sources, one on each worker, have rows of an event time and a value, both int64; a row goes
//! to the worker that the hash of its value says, which is the same hash in both. There the rows
//! and the event times of each value are added up, and checked. In one process, and in two of one
//! host over TCP.

mod together;
mod tuples;

use std::fmt;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use ringway::batch::{Row, Rows};
use ringway::job::Exchange;
use ringway::output::ByKeyHash;
use ringway::partition::Key;
use ringway::placement::CpuId;
use serde::{Deserialize, Serialize};

use crate::contest::{Contest, Harness, Measure};
use crate::cpus::CpuPair;
use crate::edge::socket::{Peer, serve};
use crate::error::BenchError;
use crate::job::exchange::{Form, Input, Keyed, Sums, by_column, ints, run_job};
use crate::pinned::run_on;
use crate::spent::Spent;

/// As the cases have it.
const TIMELY: &str = "timely";

const TWO_PROCESSES: &str = "peers/engine/exchange/2processes";

/// Record batches of `event_time` and `value`; the value is the key.
struct Pairs;

impl Form for Pairs {
    type Batch = RecordBatch;
    const NAME: &'static str = "peers/engine/exchange";

    fn of(rows: &[Keyed]) -> RecordBatch {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let (values, times) = rows.iter().copied().unzip();
        let columns = [("event_time", column(times)), ("value", column(values))];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn by_key() -> Exchange {
        by_column(&Self::of(&[]), 1)
    }

    fn for_each(batch: &RecordBatch, mut each: impl FnMut(i64, i64)) {
        for (value, time) in ints(batch, 1).iter().zip(ints(batch, 0)) {
            each(*value, *time);
        }
    }
}

/// The same as typed rows.
struct TypedPairs;

impl Form for TypedPairs {
    type Batch = Rows<i64>;
    const NAME: &'static str = "peers/engine/exchange/rows";

    fn of(rows: &[Keyed]) -> Rows<i64> {
        rows.iter()
            .map(|(value, time)| Row::at(*time, *value))
            .collect()
    }

    fn by_key() -> Exchange {
        Exchange::key::<Self::Batch>(|| Box::new(ByKeyHash::new(|value: &i64| value.key_hash())))
    }

    fn for_each(batch: &Rows<i64>, mut each: impl FnMut(i64, i64)) {
        for row in batch {
            // Every row has a time; one that has lost it would not come to the right sum.
            each(row.value, row.event_time.unwrap_or_default());
        }
    }
}

/// Measures all cases of `peers/engine`.
///
/// # Errors
/// When a job fails, or a row is lost, doubled or at the wrong key.
pub(super) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    in_one_process::<Pairs>(harness)?;
    in_one_process::<TypedPairs>(harness)?;
    in_two_processes(harness)
}

fn in_one_process<F: Form>(harness: &mut Harness) -> Result<(), BenchError> {
    if !harness.wants(F::NAME) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let input = &Input::<F>::new(harness.settings.smoke);
    let tuples = &tuples::Tuples::new(harness.settings.smoke);
    harness.measure(Contest {
        name: F::NAME.to_owned(),
        unit: "rows/s",
        measure: Measure::Rate,
        baseline_name: TIMELY,
        count: 1,
        ours: Box::new(|count| run_job(cpus, input, count)),
        baseline: Box::new(|count| {
            let run = tuples::in_one_process(cpus, tuples, count)?;
            run.sums.require(&input.expected.times(count))?;
            Ok(input.sample(count, run.wall, run.spent))
        }),
    })
}

fn in_two_processes(harness: &mut Harness) -> Result<(), BenchError> {
    if !harness.wants(TWO_PROCESSES) {
        return Ok(());
    }
    let (cpus, smoke) = (harness.settings.cpus, harness.settings.smoke);
    let input = &Input::<Pairs>::new(smoke);
    let run = move |engine, count| {
        let run = in_two(engine, cpus, smoke, count)?;
        run.sums.require(&input.expected.times(count))?;
        Ok(input.sample(count, run.wall, run.spent))
    };
    harness.measure(Contest {
        name: TWO_PROCESSES.to_owned(),
        unit: "rows/s",
        measure: Measure::Rate,
        baseline_name: TIMELY,
        count: 1,
        ours: Box::new(move |count| run(Engine::Ringway, count)),
        baseline: Box::new(move |count| run(Engine::Timely, count)),
    })
}

/// What a run came to in all processes.
struct Run {
    sums: Sums,
    wall: Duration,
    spent: Spent,
}

/// Whose exchange it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Ringway,
    Timely,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ringway => "ringway",
            Self::Timely => TIMELY,
        })
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = [Self::Ringway, Self::Timely].into_iter();
        let found = all.find(|engine| engine.to_string() == text);
        found.ok_or_else(|| format!("there is no engine {text:?}"))
    }
}

/// What a process is told that takes part in an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) engine: Engine,
    /// Where all processes are.
    pub(crate) hosts: String,
    pub(crate) count: u64,
    pub(crate) smoke: bool,
    /// The CPU of its worker.
    pub(crate) cpu: CpuId,
}

/// What the second process says at the end.
#[derive(Debug, Serialize, Deserialize)]
struct Done {
    sums: Sums,
    spent: Spent,
}

fn in_two(engine: Engine, cpus: CpuPair, smoke: bool, count: u64) -> Result<Run, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let share = Share {
        engine,
        // The second process has a port of its own choice.
        hosts: format!("{},{}:0", listener.local_addr()?, Ipv4Addr::LOCALHOST),
        count,
        smoke,
        cpu: cpus.first,
    };
    let mut words = vec![
        "peer".to_owned(),
        "exchange".to_owned(),
        engine.to_string(),
        share.hosts.clone(),
        count.to_string(),
        cpus.second.to_string(),
    ];
    if smoke {
        words.push("--smoke".to_owned());
    }
    let mut peer = Peer::start(&words)?;
    let to = peer.address;
    let mut run = run_on(cpus.first, || match engine {
        Engine::Ringway => together::run(&share, 0, Some(listener)),
        Engine::Timely => tuples::in_two_processes(&share, 0, TcpStream::connect(to)?),
    })??;
    let done: Done = peer.received()?;
    run.sums.add_all(&done.sums);
    run.spent += done.spent;
    Ok(run)
}

/// In the second process: takes part.
///
/// # Errors
/// When it cannot be pinned, or the exchange fails.
pub(crate) fn take_part(share: &Share) -> Result<String, BenchError> {
    serve(share.cpu, |listener| {
        let run = match share.engine {
            Engine::Ringway => together::run(share, 1, None),
            Engine::Timely => tuples::in_two_processes(share, 1, listener.accept()?.0),
        }?;
        Ok(Done {
            sums: run.sums,
            spent: run.spent,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::exchange::rows;

    #[test]
    fn both_engines_bring_every_row_to_its_key() {
        let cpus = CpuPair::choose(None).unwrap();
        let input = Input::<TypedPairs>::new(true);
        let columns = Input::<Pairs>::new(true);
        assert!(run_job(cpus, &input, 2).unwrap().value > 0.0);
        assert!(run_job(cpus, &columns, 2).unwrap().value > 0.0);
        let run = tuples::in_one_process(cpus, &tuples::Tuples::new(true), 2).unwrap();
        run.sums.require(&input.expected.times(2)).unwrap();
    }

    #[test]
    fn a_row_that_is_lost_doubled_or_at_another_key_is_found() {
        let input = Input::<Pairs>::new(true);
        let run = |wrong: &dyn Fn(&mut Sums, i64, i64)| {
            let mut sums = Sums::none();
            let rows = rows(true);
            for (at, (key, value)) in rows.iter().flatten().flatten().enumerate() {
                match at {
                    7 => wrong(&mut sums, *key, *value),
                    _ => sums.add(*key, *value),
                }
            }
            sums.require(&input.expected).is_ok()
        };
        assert!(run(&|sums, key, value| sums.add(key, value)));
        assert!(!run(&|_, _, _| ()), "it was lost");
        assert!(!run(&|sums, key, value| {
            sums.add(key, value);
            sums.add(key, value);
        }));
        assert!(!run(
            &|sums, key, value| sums.add((key + 7_919) % 7_000_000, value)
        ));
    }

    #[test]
    fn an_engine_is_a_word_of_the_command_line() {
        for engine in [Engine::Ringway, Engine::Timely] {
            assert_eq!(engine.to_string().parse(), Ok(engine));
        }
        assert!("loom".parse::<Engine>().is_err());
    }
}
