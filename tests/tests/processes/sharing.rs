//! Checkpoints of a job whose processes share memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringway::batch::{Row, Rows};
use ringway::connect::Collected;
use ringway::data_plane::TransportChoice;
use ringway::edge::Transport;
use ringway::element::Barrier;
use ringway::error::OperatorError;
use ringway::job::{Job, JobOutcome};
use ringway::operator::{
    Emitter, Operator, Progress, Source, SourceProgress, StateWriter, Subtask,
};
use ringway::task::TaskCommand;
use ringway_shm::Bell;
use ringway_tests::within::{LONG, within};

use crate::rig::Rig;

const ROWS: i64 = 4_000;
const CHECKPOINTS: u64 = 100;
const SUBTASKS: u32 = 4;

/// Who has saved each checkpoint.
type Saved = Arc<Mutex<BTreeMap<u64, HashSet<String>>>>;

/// Every n-th number, one a batch.
struct Numbers {
    next: i64,
    step: i64,
}

impl Source<Rows<i64>> for Numbers {
    fn open(&mut self, _: &Subtask, _: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Rows<i64>>) -> Result<SourceProgress, OperatorError> {
        if self.next >= ROWS {
            return Ok(SourceProgress::End);
        }
        out.emit(Rows::from(vec![Row::untimed(self.next)]));
        self.next += self.step;
        Ok(SourceProgress::Ready)
    }
}

/// Passes rows on, and tells of its checkpoints.
struct Passes {
    saved: Saved,
    name: String,
}

impl Operator<Rows<i64>, Rows<i64>> for Passes {
    fn process(
        &mut self,
        batch: Rows<i64>,
        out: &mut Emitter<'_, Rows<i64>>,
    ) -> Result<Progress, OperatorError> {
        out.emit(batch);
        Ok(Progress::Done)
    }

    fn snapshot(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        let mut saved = self.saved.lock().unwrap();
        let is_new = saved
            .entry(barrier.id)
            .or_default()
            .insert(self.name.clone());
        assert!(
            is_new,
            "{} saved checkpoint {} twice",
            self.name, barrier.id
        );
        Ok(())
    }
}

fn passing(job: &Job, saved: &Saved, collected: &Collected<Rows<i64>>) {
    let source = job.source("numbers", |subtask| {
        Ok(Numbers {
            next: subtask.index.into(),
            step: subtask.parallelism.subtasks().into(),
        })
    });
    let (saved, sink) = (Arc::clone(saved), collected.clone());
    source
        .batched()
        .key_by(|n: &i64| *n)
        .process("pass", move |subtask, _| {
            Ok(Passes {
                saved: Arc::clone(&saved),
                name: subtask.to_string(),
            })
        })
        .batched()
        .rebalance()
        .sink("collect", sink.sink());
}

/// Every row comes once, however many barriers overtake it, and checkpoints get to every subtask
/// in all processes.
#[test]
fn a_job_over_shared_memory_loses_no_row_under_checkpoints_that_overtake() {
    for barrier in [Barrier::unaligned, Barrier::aligned] {
        within(LONG, "the processes", move || {
            let (saved, collected) = (Saved::default(), Collected::new());
            let rig = Rig::new(2, SUBTASKS)
                .over(TransportChoice::Shared)
                .meanwhile(move |_, handle| {
                    for id in 1..=CHECKPOINTS {
                        // Refused where the job is over, or has not got so far.
                        let _ = handle.command(TaskCommand::Trigger(barrier(id)));
                        std::thread::sleep(Duration::from_millis(2));
                    }
                });
            let (saves, into) = (Arc::clone(&saved), collected.clone());
            let ended = rig.run(move |_, job| passing(job, &saves, &into));
            for report in ended {
                let report = report.unwrap();
                assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
                let edges = report.tasks.iter().flat_map(|task| &task.edges);
                let transports: HashSet<_> = edges.map(|edge| edge.transport).collect();
                assert!(transports.contains(&Transport::Shared), "{transports:?}");
                assert!(!transports.contains(&Transport::Socket), "{transports:?}");
            }
            let mut rows = collected.values::<i64>();
            rows.sort_unstable();
            assert_eq!(rows, (0..ROWS).collect::<Vec<_>>());
            let saved = saved.lock().unwrap();
            let complete = saved.values().filter(|who| who.len() == SUBTASKS as usize);
            let complete = complete.count();
            println!(
                "{complete} of {} checkpoints got to every subtask",
                saved.len()
            );
            assert!(complete > 0, "{saved:?}");
        });
    }
}
