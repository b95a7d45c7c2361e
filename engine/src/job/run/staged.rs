//! Jobs in several stages: the next one runs when the one before has ended, and again when it
//! has failed.

use crate::connect::ConnectorStats;
use crate::connect::spill::SpillReport;
use crate::error::OperatorError;
use crate::job::blocking::BlockingEdge;
use crate::job::build::BuildError;
use crate::job::plan::Plan;
use crate::task::{TaskError, TaskOutcome};
use crate::worker::Host;

use super::{JobError, JobHandle, Opened, RunOptions, build_alone};

/// A job in several stages.
pub(super) struct Staged {
    plan: Plan,
    options: RunOptions,
    host: Host,
    /// The stage that runs.
    stage: usize,
    /// Its groups of chains that have not ended.
    groups: Vec<Vec<usize>>,
    /// How often it may be run again.
    restarts_left: u32,
    restarts: u32,
    /// How many tasks had ended before it.
    finished_before: usize,
}

impl Staged {
    /// The first stage of a plan is about to be started.
    pub(super) fn begin(plan: &Plan, options: &RunOptions, host: Host) -> Result<Self, JobError> {
        let mut staged = Self {
            plan: plan.clone(),
            options: options.clone(),
            host,
            stage: 0,
            groups: plan.stages[0].groups.clone(),
            restarts_left: 0,
            restarts: 0,
            finished_before: 0,
        };
        for (at, edge) in plan.graph().blocking().iter().enumerate() {
            if let Err(error) = edge.spill.begin() {
                // Those that are begun belong to this job, the others to none or to another.
                staged.plan.graph.blocking.truncate(at);
                return Err(not_begun(edge, plan, &error));
            }
        }
        Ok(staged)
    }

    fn chains(&self) -> Vec<usize> {
        self.groups.concat()
    }

    /// The blocking exchanges that one of `chains` reads.
    fn read_by<'a>(&'a self, chains: &'a [usize]) -> impl Iterator<Item = &'a BlockingEdge> {
        let edges = self.plan.graph.blocking.iter();
        edges.filter(|edge| self.has(chains, edge.to))
    }

    fn has(&self, chains: &[usize], node: crate::job::NodeId) -> bool {
        let mut chains = chains.iter().map(|chain| &self.plan.chains[*chain]);
        chains.any(|chain| chain.nodes.contains(&node))
    }

    /// Goes on to the next stage, if there is one.
    fn advance(&mut self) -> bool {
        let stage = &self.plan.stages[self.stage];
        let chains = stage.groups.concat();
        self.read_by(&chains).for_each(|edge| edge.spill.discard());
        let Some(next) = self.plan.stages.get(self.stage + 1) else {
            return false;
        };
        self.groups = next.groups.clone();
        self.stage += 1;
        let chains = self.chains();
        let restarts = self.read_by(&chains).map(|edge| edge.options().restarts);
        self.restarts_left = restarts.max().unwrap_or(0);
        true
    }

    /// Goes back to the beginning of the stage, without the groups whose chains have all ended;
    /// not when there are no restarts left, or a group that failed reads no blocking exchange.
    fn go_back(&mut self, has_ended: impl Fn(&str) -> bool) -> bool {
        if self.restarts_left == 0 {
            return false;
        }
        let mut groups = self.groups.clone();
        groups.retain(|group| {
            let mut chains = group.iter().map(|chain| &self.plan.chains[*chain]);
            !chains.all(|chain| has_ended(&chain.uids[0]))
        });
        if groups
            .iter()
            .any(|group| self.read_by(group).next().is_none())
        {
            return false;
        }
        self.groups = groups;
        self.restarts_left -= 1;
        self.restarts += 1;
        let chains = self.chains();
        let edges = self.plan.graph.blocking.iter();
        let written = edges.filter(|edge| self.has(&chains, edge.from));
        written.for_each(|edge| edge.spill.begin_again());
        let nodes = chains
            .iter()
            .flat_map(|chain| &self.plan.chains[*chain].nodes);
        let counted = nodes.filter_map(|node| self.plan.graph[*node].stats.as_ref());
        counted.for_each(ConnectorStats::clear);
        true
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for edge in &self.plan.graph.blocking {
            edge.spill.end();
        }
    }
}

impl JobHandle {
    /// Starts the first stage.
    pub(super) fn start_staged(mut self, staged: Staged) -> Result<Self, JobError> {
        self.staged = Some(staged);
        self.start_stage()?;
        Ok(self)
    }

    /// Starts the next stage if that which ran has ended, and that again if it has failed and
    /// may be run again. Returns whether something runs again.
    pub(super) fn go_on(&mut self) -> bool {
        let is_given_up =
            self.cancelled.is_some() || self.sources_stopped || self.not_made.is_some();
        if is_given_up || self.staged.is_none() || self.unfinished().is_some() {
            return false;
        }
        self.join_workers();
        if !self.advance() {
            return false;
        }
        self.stopping = None;
        self.opened = Opened::Nothing;
        self.workers.clear();
        self.live.clear();
        if let Err(error) = self.start_stage() {
            self.not_made = Some(error);
            self.stop_all();
        }
        true
    }

    /// Whether the sources were stopped and a stage is left that did not run.
    pub(super) fn is_cut(&self) -> bool {
        let staged = self.staged.as_ref();
        self.sources_stopped
            && staged.is_some_and(|staged| staged.stage + 1 < staged.plan.stages.len())
    }

    /// Removes what was spilled. What the blocking exchanges did, and how often a stage was run
    /// again.
    pub(super) fn end_staged(&mut self) -> (Vec<SpillReport>, u32) {
        let Some(staged) = &self.staged else {
            return (Vec::new(), 0);
        };
        let edges = staged.plan.graph.blocking.iter();
        let spills = edges.filter_map(|edge| edge.spill.end()).collect();
        (spills, staged.restarts)
    }

    fn advance(&mut self) -> bool {
        let Some(staged) = &mut self.staged else {
            return false;
        };
        let of_stage = &self.finished[staged.finished_before..];
        let is_ended = |outcome: &TaskOutcome| matches!(outcome, TaskOutcome::Ended);
        if of_stage.iter().all(|(_, outcome)| is_ended(outcome)) {
            staged.finished_before = self.finished.len();
            return staged.advance();
        }
        let failures = of_stage.iter().filter_map(|(_, outcome)| match outcome {
            TaskOutcome::Failed(error) => Some(error),
            _ => None,
        });
        let Some(cause) = failures.max_by_key(|error| error.is_cause()) else {
            return false;
        };
        let message = TaskError::to_string(cause);
        let has_ended = |uid: &str| {
            let mut tasks = of_stage.iter().filter(|(report, _)| report.uid == uid);
            tasks.all(|(_, outcome)| is_ended(outcome))
        };
        if !staged.go_back(has_ended) {
            return false;
        }
        let again: Vec<String> = staged
            .chains()
            .iter()
            .map(|chain| staged.plan.chains[*chain].uids[0].clone())
            .collect();
        tracing::warn!(
            stage = staged.stage,
            cause = message,
            "the stage is run again"
        );
        // What a failed attempt did is not what the job did.
        self.finished
            .retain(|(report, _)| !again.contains(&report.uid));
        true
    }

    fn start_stage(&mut self) -> Result<(), JobError> {
        let Some(staged) = self.staged.take() else {
            return Ok(());
        };
        let chains = staged.chains();
        staged
            .read_by(&chains)
            .for_each(|edge| edge.spill.read_begins());
        let built = build_alone(&staged.plan, &staged.host, Some(&chains));
        let started = built.map_err(JobError::from).and_then(|built| {
            self.add_workers(&staged.plan, &staged.options, &staged.host, built, None)
        });
        self.staged = Some(staged);
        started?;
        self.begin();
        if self.sources_ended && self.stopping.is_none() {
            self.end_sources_again();
        }
        Ok(())
    }
}

fn not_begun(edge: &BlockingEdge, plan: &Plan, error: &OperatorError) -> JobError {
    JobError::Build(BuildError::Operator {
        operator: plan.graph()[edge.to].name.clone(),
        message: error.to_string(),
    })
}
