//! Random graphs of forks, unions, splits and exchanges under random checkpoints: every row
//! arrives as often as the graph says, and every job comes to its end.

use std::time::{Duration, Instant};

use ringway::connect::Collected;
use ringway::element::Barrier;
use ringway::job::{DataStream, Job, JobHandle, JobOutcome, JobReport};
use ringway::task::TaskCommand;
use ringway::worker::IdlePolicy;
use ringway_tests::seed::Seeded;
use ringway_tests::within::LONG;

use crate::barriers::Counting;
use crate::parts::{Batch, How, subtasks};

/// Rows of each source subtask.
const ROWS: i64 = 200;

/// More rows than this in one stream make a round slow without making it more telling.
const STREAM_ROWS_MAX: usize = 4_000;

/// A stream, and the rows that come out of it.
struct Known {
    stream: DataStream<i64>,
    rows: Vec<i64>,
}

/// Sends a stream by a random exchange into its next operator of `parallelism` subtasks.
fn exchanged(random: &mut Seeded, known: Known, parallelism: u32) -> Known {
    let Known { stream, rows } = known;
    match random.below(4) {
        0 => Known {
            stream: stream.rebalance(),
            rows,
        },
        1 if rows.len() * parallelism as usize <= STREAM_ROWS_MAX => Known {
            stream: stream.broadcast(),
            rows: rows
                .iter()
                .flat_map(|&n| vec![n; parallelism as usize])
                .collect(),
        },
        2 => {
            let keyed = stream.key_by(|n: &i64| n % 13).process("keyed", |_, _| {
                Ok(ringway::operators::rows::Map::new(|n: i64| n))
            });
            Known {
                stream: keyed,
                rows,
            }
        }
        _ => Known { stream, rows },
    }
}

/// Puts one more operator at the end of a random stream, or joins two.
fn grow(random: &mut Seeded, streams: &mut Vec<Known>) {
    let at = random.below(streams.len() as u64) as usize;
    let parallelism = 1 + random.below(3) as u32;
    let known = streams.swap_remove(at);
    let Known { stream, rows } = exchanged(random, known, parallelism);
    let p = subtasks(parallelism);
    match random.below(6) {
        0 => streams.push(Known {
            stream: stream.map(|n: i64| n + 1).parallelism(p),
            rows: rows.iter().map(|n| n + 1).collect(),
        }),
        1 => streams.push(Known {
            stream: stream.filter(|n| n % 3 != 0).parallelism(p),
            rows: rows.into_iter().filter(|n| n % 3 != 0).collect(),
        }),
        2 if rows.len() * 2 <= STREAM_ROWS_MAX => streams.push(Known {
            stream: stream.flat_map(|n: i64| [n, -n]).parallelism(p),
            rows: rows.iter().flat_map(|&n| [n, -n]).collect(),
        }),
        3 => {
            let (even, odd) = stream.split(|n| n % 2 == 0);
            let (even_rows, odd_rows) = rows.into_iter().partition(|n| n % 2 == 0);
            streams.push(Known {
                stream: even.parallelism(p),
                rows: even_rows,
            });
            streams.push(Known {
                stream: odd,
                rows: odd_rows,
            });
        }
        4 => {
            let stream = stream.map(|n: i64| n).parallelism(p);
            streams.push(Known {
                stream: stream.clone(),
                rows: rows.clone(),
            });
            streams.push(Known { stream, rows });
        }
        _ => {
            let mut stream = stream.map(|n: i64| n).parallelism(p);
            let mut rows = rows;
            if let Some(other) = streams.pop() {
                stream = stream.rebalance().union(other.stream.rebalance());
                rows.extend(other.rows);
            }
            streams.push(Known {
                stream: stream.map(|n: i64| n),
                rows,
            });
        }
    }
}

fn run_random_job(random: &mut Seeded) {
    let job = Job::new("random");
    let mut streams = Vec::new();
    for source in 0..1 + random.below(2) {
        let parallelism = 1 + random.below(2) as u32;
        let batch = 1 + random.below(9) as i64;
        let name = format!("source {source}");
        let make = move |subtask: &_| Ok(Counting::new(subtask, ROWS, batch));
        let stream = job.source(&name, make).parallelism(subtasks(parallelism));
        streams.push(Known {
            stream,
            rows: (0..ROWS * i64::from(parallelism)).collect(),
        });
    }
    for _ in 0..2 + random.below(8) {
        grow(random, &mut streams);
    }
    let sinks = streams
        .into_iter()
        .enumerate()
        .map(|(sink, Known { stream, rows })| {
            let collected = Collected::<Batch>::new();
            stream
                .rebalance()
                .sink(&format!("sink {sink}"), collected.sink());
            (collected, rows)
        });
    let sinks: Vec<_> = sinks.collect();
    let idle = [IdlePolicy::Adaptive, IdlePolicy::Park, IdlePolicy::Spin];
    let how = How {
        capacity: 1 + random.below(4) as usize,
        parallelism: 1 + random.below(2) as u32,
        idle: idle[random.below(3) as usize],
        ..How::workers(1 + random.below(3) as usize)
    };
    let report = run_under_checkpoints(how.start(job), random);
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    for (sink, (collected, mut expected)) in sinks.into_iter().enumerate() {
        let mut values = collected.values::<i64>();
        values.sort_unstable();
        expected.sort_unstable();
        assert!(
            values == expected,
            "sink {sink}: {} of {}",
            values.len(),
            expected.len()
        );
    }
}

/// Begins checkpoints of either kind at random times, gives some up, and waits for the end.
fn run_under_checkpoints(mut handle: JobHandle, random: &mut Seeded) -> JobReport {
    let begun = Instant::now();
    let mut id = 0;
    loop {
        let pause = Duration::from_micros(random.below(2_000));
        if let Some(report) = handle.wait_timeout(pause) {
            return report;
        }
        assert!(begun.elapsed() < LONG, "the job comes to its end");
        id += 1;
        let unaligned = random.below(2) == 0;
        let barrier = if unaligned {
            Barrier::unaligned(id)
        } else {
            Barrier::aligned(id)
        };
        // A worker that is behind with its commands is no failure.
        let _ = handle.command(TaskCommand::Trigger(barrier));
        if random.below(8) == 0 {
            let _ = handle.command(TaskCommand::Abort(id));
        }
    }
}

#[test]
fn every_row_of_a_random_graph_arrives_as_often_as_the_graph_says() {
    let mut random = Seeded::new();
    let begun = Instant::now();
    let mut rounds = 0;
    while rounds < 60 && begun.elapsed() < Duration::from_secs(15) {
        run_random_job(&mut random);
        rounds += 1;
    }
    println!("{rounds} random graphs");
}
