//! The part of a job that runs in one of several processes.

use ringway_shm::Bell;

use crate::clock::Clock;
use crate::control::{JobEnd, ProcessEnd, StopWay};
use crate::job::build::{BuildError, OpenPart, Part};
use crate::job::cluster::{Cluster, Command};
use crate::job::plan::Plan;
use crate::task::TaskReport;
use crate::worker::{Host, WorkerCommand};

use super::making::Making;
use super::{JobError, JobHandle, JobOutcome, Opened, RunOptions};

/// Starts the part of a plan that runs in this process, one of those of `cluster`. It runs when
/// everything is open in all of them. What cannot be made or opened here is a failure of the
/// job in all of them, and its report says so.
///
/// The handle must be waited on all the time: whoever is not heard of counts as lost.
///
/// # Errors
/// When this process cannot wait for the others.
pub fn start_in(
    plan: &Plan,
    options: &RunOptions,
    mut cluster: Cluster,
) -> Result<JobHandle, JobError> {
    let host = Host::new(options.host);
    let bell = Bell::descriptor().map_err(BuildError::Bell)?;
    let drivers = cluster.drivers();
    let part = Part {
        process: cluster.process(),
        chains: None,
        has_connections: drivers.is_some(),
        remote: &mut |wanted| cluster.open(wanted),
    };
    let opened = OpenPart::new(plan, &host, part).map_err(JobError::from);
    let mut job = JobHandle::new(host.in_use().clone(), bell, Clock::start());
    job.cluster = Some(cluster);
    match opened.and_then(|part| Making::start(part, plan, options, host, drivers, &job.bell)) {
        Ok(making) => job.making = Some(making),
        Err(error) => job.cannot_be_made(error),
    }
    job.begin();
    Ok(job)
}

impl JobHandle {
    /// Its parts cannot be made: what was started is cancelled, and all processes are told.
    pub(super) fn cannot_be_made(&mut self, error: JobError) {
        if let Some(cluster) = &mut self.cluster {
            cluster.failed(true, error.to_string());
        }
        self.not_made = Some(error);
        self.stop_all();
    }

    /// Does what is decided for all processes, and tells what happened in this one.
    pub(super) fn take_part(&mut self) {
        let Some(cluster) = &mut self.cluster else {
            return;
        };
        cluster.poll();
        while let Some(command) = self.cluster.as_mut().and_then(Cluster::next_command) {
            match command {
                Command::Start if self.stopping.is_none() => self.send(&WorkerCommand::Start),
                Command::Start => {}
                Command::Stop(StopWay::End) => self.end_sources(),
                Command::Stop(StopWay::Stop) => self.stop_sources(),
                Command::Cancel => self.stop_all(),
                Command::Report => self.tell_progress(),
            }
        }
        self.tell_when_open();
        if self.local.is_none() && self.tasks_are_over(self.clock.now()) {
            self.tasks_ended();
        }
    }

    /// Tells once that all tasks are open, and all edges to other processes.
    fn tell_when_open(&mut self) {
        if self.opened != Opened::Tasks || self.stopping.is_some() {
            return;
        }
        let Some(cluster) = &mut self.cluster else {
            return;
        };
        match cluster.poll_edges() {
            Ok(false) => {}
            Ok(true) => {
                self.opened = Opened::All;
                cluster.opened();
            }
            Err(error) => self.cannot_be_made(BuildError::Remote(error).into()),
        }
    }

    /// The tasks of this process are over, those of others may not be.
    fn tasks_ended(&mut self) {
        let outcome = self.outcome();
        let tasks: Vec<TaskReport> = self.own_progress().cloned().collect();
        if let Some(cluster) = &mut self.cluster {
            let end = match &outcome {
                JobOutcome::Ended => ProcessEnd::Ended,
                JobOutcome::Stopped => ProcessEnd::Stopped,
                JobOutcome::Cancelled => ProcessEnd::Cancelled,
                JobOutcome::Failed(error) => {
                    cluster.failed(error.is_cause(), error.to_string());
                    ProcessEnd::Failed
                }
            };
            cluster.finished(end, &tasks);
        }
        self.local = Some(outcome);
    }

    /// Tells process 0 what is known now, and asks the workers for what to tell next.
    fn tell_progress(&mut self) {
        let _ = self.send_if_room(&WorkerCommand::Report);
        let tasks: Vec<TaskReport> = self.own_progress().cloned().collect();
        if let Some(cluster) = &mut self.cluster {
            cluster.tell_progress(&tasks);
        }
    }

    /// The outcome in all processes, of which that here is `local`.
    pub(super) fn outcome_of_all(&self, local: JobOutcome) -> JobOutcome {
        let Some((cluster, end)) = self.cluster.as_ref().and_then(|c| Some((c, c.end()?))) else {
            return local;
        };
        match (end, local) {
            (JobEnd::Ended, _) => JobOutcome::Ended,
            (JobEnd::Stopped, _) => JobOutcome::Stopped,
            (JobEnd::Cancelled(_), _) => JobOutcome::Cancelled,
            (JobEnd::Failed(fault), JobOutcome::Failed(error))
                if fault.process as usize == cluster.process()
                    && error.to_string() == fault.message =>
            {
                JobOutcome::Failed(error)
            }
            (JobEnd::Failed(fault), _) => {
                let name = cluster.name_of(fault.process as usize);
                let said = match fault.message.starts_with(&name) {
                    true => fault.message.clone(),
                    false => format!("{name}: {}", fault.message),
                };
                JobOutcome::Failed(JobError::Elsewhere(said))
            }
        }
    }
}

impl JobError {
    /// Whether this failure began in this process, and not at the other end of an edge.
    fn is_cause(&self) -> bool {
        match self {
            Self::Task(error) => error.is_cause(),
            _ => true,
        }
    }
}
