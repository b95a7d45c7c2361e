//! A barrier divides the records of a stream in two, in every subtask in the same place.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringway::clock::ProcessingTime;
use ringway::element::Barrier;
use ringway::error::OperatorError;
use ringway::job::{Job, JobOutcome};
use ringway::operator::{
    Emitter, Operator, Progress, Sink, Source, SourceProgress, StateWriter, Subtask,
};
use ringway::task::TaskCommand;
use ringway_tests::seed::Seeded;

use crate::parts::{Batch, How, rows};

/// For each checkpoint the rows that each subtask had seen, told by where it stands.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<BTreeMap<u64, BTreeMap<String, i64>>>>);

impl Seen {
    fn add(&self, checkpoint: u64, who: String, count: i64) {
        let mut seen = self.0.lock().unwrap();
        let before = seen
            .entry(checkpoint)
            .or_default()
            .insert(who.clone(), count);
        assert_eq!(before, None, "{who} saved checkpoint {checkpoint} twice");
    }
}

/// Counts from its subtask's number in steps of the parallelism, up to `total` rows in batches.
pub(crate) struct Counting {
    next: i64,
    step: i64,
    left: i64,
    batch: i64,
    emitted: i64,
    seen: Option<Seen>,
    name: String,
}

impl Counting {
    pub(crate) fn new(subtask: &Subtask, total: i64, batch: i64) -> Self {
        Self {
            next: i64::from(subtask.index),
            step: i64::from(subtask.parallelism.subtasks()),
            left: total,
            batch,
            emitted: 0,
            seen: None,
            name: subtask.to_string(),
        }
    }

    fn seen_by(self, seen: Seen) -> Self {
        Self {
            seen: Some(seen),
            ..self
        }
    }
}

impl Source<Batch> for Counting {
    fn open(&mut self, _: &Subtask, _: &ringway_shm::Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Batch>) -> Result<SourceProgress, OperatorError> {
        let count = self.batch.min(self.left);
        if count == 0 {
            return Ok(SourceProgress::End);
        }
        out.emit(rows((0..count).map(|n| self.next + n * self.step)));
        self.next += count * self.step;
        self.left -= count;
        self.emitted += count;
        Ok(SourceProgress::Ready)
    }

    fn snapshot(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        if let Some(seen) = &self.seen {
            seen.add(barrier.id, format!("source {}", self.name), self.emitted);
        }
        Ok(())
    }
}

/// Counts rows and passes them on, with a pause now and then.
struct CountsOn {
    seen: Seen,
    name: String,
    count: i64,
    random: Seeded,
}

impl Operator<Batch, Batch> for CountsOn {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        self.count += batch.len() as i64;
        if self.random.below(50) == 0 {
            std::thread::sleep(Duration::from_micros(self.random.below(1_000)));
        }
        out.emit(batch);
        Ok(Progress::Done)
    }

    fn snapshot(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        self.seen
            .add(barrier.id, format!("keyed {}", self.name), self.count);
        Ok(())
    }
}

/// Counts rows at the end, and keeps that none comes twice.
struct CountsLast {
    seen: Seen,
    name: String,
    rows: HashSet<i64>,
}

impl Sink<Batch> for CountsLast {
    fn write(&mut self, batch: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        for row in batch {
            assert!(self.rows.insert(row.value), "row {} came twice", row.value);
        }
        Ok(Progress::Done)
    }

    fn prepare(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        self.seen.add(
            barrier.id,
            format!("sink {}", self.name),
            self.rows.len() as i64,
        );
        Ok(())
    }
}

#[test]
fn b37_at_each_barrier_consumers_have_seen_exactly_what_sources_had_emitted() {
    for workers in [1, 2] {
        let seen = Seen::default();
        let job = Job::new("keyed");
        let (of_source, of_keyed, of_sink) = (seen.clone(), seen.clone(), seen.clone());
        let source = job.source("counting", move |subtask| {
            Ok(Counting::new(subtask, 60_000, 7).seen_by(of_source.clone()))
        });
        let keyed = source
            .parallelism(crate::parts::subtasks(2))
            .key_by(|n| n % 12);
        let counted = keyed.process("count", move |subtask, _| {
            let (seen, name) = (of_keyed.clone(), subtask.to_string());
            Ok(CountsOn {
                seen,
                name,
                count: 0,
                random: Seeded::new(),
            })
        });
        counted.rebalance().sink_with("last", move |subtask| {
            let (seen, name) = (of_sink.clone(), subtask.to_string());
            Ok(CountsLast {
                seen,
                name,
                rows: HashSet::new(),
            })
        });
        let mut handle = How {
            capacity: 1,
            parallelism: 4,
            ..How::workers(workers)
        }
        .start(job);
        let mut id = 0;
        let report = loop {
            if let Some(report) = handle.wait_timeout(Duration::from_millis(5)) {
                break report;
            }
            id += 1;
            handle
                .command(TaskCommand::Trigger(Barrier::aligned(id)))
                .unwrap();
        };
        assert!(
            matches!(report.outcome, JobOutcome::Ended),
            "{:?}",
            report.outcome
        );
        let complete = check(&seen);
        println!("{workers} workers: {complete} of {id} checkpoints were complete");
        assert!(complete >= 5, "{complete} complete checkpoints");
        let lost: u64 = report.tasks.iter().map(|task| task.checkpoints_lost).sum();
        assert_eq!(lost, 0);
    }
}

/// Compares the counts of each checkpoint that all ten subtasks reported.
fn check(seen: &Seen) -> usize {
    let seen = seen.0.lock().unwrap();
    let complete = seen.iter().filter(|(_, counts)| counts.len() == 10);
    for (id, counts) in complete.clone() {
        let of = |kind: &str| -> i64 {
            let counts = counts.iter().filter(|(who, _)| who.starts_with(kind));
            counts.map(|(_, count)| count).sum()
        };
        assert_eq!(of("source"), of("keyed"), "checkpoint {id}: {counts:?}");
        assert_eq!(of("source"), of("sink"), "checkpoint {id}: {counts:?}");
    }
    complete.count()
}
