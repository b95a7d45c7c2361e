//! What process 0 decides for all processes of a job.

use std::collections::VecDeque;
use std::time::Duration;

use super::message::{CancelCause, Fault, JobEnd, Message, ProcessEnd, StopWay};

/// What the leader of a job is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderOptions {
    /// How many processes the job has, the leader among them.
    pub processes: u32,
    /// Time that the processes have to stop once the job is cancelled or has failed.
    pub stop_within: Duration,
}

/// Decides what a job does in all of its processes. Process 0, where it stands, is a process
/// as any other: what happens there is told to it in the same messages.
#[derive(Debug)]
pub struct Leader {
    options: LeaderOptions,
    members: Vec<Member>,
    phase: Phase,
    /// The fault that counts: the first one that is a cause, or else the first.
    fault: Option<Fault>,
    /// Who cancelled the job, if somebody did.
    cancelled: Option<CancelCause>,
    stop_by: Option<Duration>,
    told_end: bool,
    told_stop: bool,
    actions: VecDeque<LeaderAction>,
    end: Option<JobEnd>,
}

/// What is to be told to all processes that are there, process 0 among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderAction {
    /// All are there: make and open everything.
    Open,
    /// Everything is open: run.
    Start,
    /// Stop the sources.
    Stop(StopWay),
    /// Cancel everything.
    Cancel(CancelCause),
    /// The job is over.
    Over(JobEnd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering,
    Opening,
    Running,
    Over,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    joined: bool,
    opened: bool,
    end: Option<ProcessEnd>,
    lost: bool,
}

impl Leader {
    /// A leader that waits for all processes; process 0 is there.
    pub fn new(options: LeaderOptions) -> Self {
        let mut members = vec![Member::default(); options.processes as usize];
        if let Some(own) = members.first_mut() {
            own.joined = true;
        }
        let mut leader = Self {
            options,
            members,
            phase: Phase::Gathering,
            fault: None,
            cancelled: None,
            stop_by: None,
            told_end: false,
            told_stop: false,
            actions: VecDeque::new(),
            end: None,
        };
        leader.open_if_all_are_there();
        leader
    }

    /// Process `process` is there.
    ///
    /// # Errors
    /// Why it is not wanted: another one is there under its number, or the job has gone on.
    pub fn handle_joined(&mut self, process: u32) -> Result<(), String> {
        if self.phase == Phase::Over {
            return Err("the job is over".to_owned());
        }
        match self.members.get_mut(process as usize) {
            Some(member) if !member.joined => member.joined = true,
            _ => {
                return Err(format!(
                    "process {process} is there already: give each process a number of its own"
                ));
            }
        }
        self.open_if_all_are_there();
        Ok(())
    }

    /// Process `process` has said something. What has no place here changes nothing, and what
    /// is said twice counts once.
    pub fn handle_message(&mut self, now: Duration, process: u32, message: Message) {
        let Some(member) = self.members.get_mut(process as usize) else {
            return;
        };
        match message {
            Message::Opened if self.phase == Phase::Opening => {
                member.opened = true;
                if self.members.iter().all(|member| member.opened) {
                    self.phase = Phase::Running;
                    self.actions.push_back(LeaderAction::Start);
                }
            }
            Message::Stop(way) => self.stop(way),
            Message::Cancel(cause) => {
                self.cancelled.get_or_insert(cause);
                self.cancel(now, cause);
            }
            Message::Failure(fault) => self.fail(now, Fault { process, ..fault }),
            Message::Finished(end, _) => {
                member.end.get_or_insert(end);
                self.end_if_all_are_over();
            }
            _ => {}
        }
    }

    /// The connection to process `process` is over, and why. If that had not finished, the job
    /// has failed.
    pub fn handle_lost(&mut self, now: Duration, process: u32, cause: impl Into<String>) {
        let Some(member) = self.members.get_mut(process as usize) else {
            return;
        };
        let had_finished = member.end.is_some();
        if std::mem::replace(&mut member.lost, true) || self.phase == Phase::Over {
            return;
        }
        if had_finished {
            return self.end_if_all_are_over();
        }
        let fault = Fault {
            process,
            is_cause: true,
            message: cause.into(),
        };
        self.fail(now, fault);
        self.end_if_all_are_over();
    }

    /// Time has passed: processes that should have stopped by now are given up.
    pub fn handle_timeout(&mut self, now: Duration) {
        if self.phase == Phase::Over || self.stop_by.is_none_or(|by| now < by) {
            return;
        }
        for process in self.missing_ends() {
            let seconds = self.options.stop_within.as_secs();
            self.keep(Fault {
                process,
                is_cause: self.fault.is_none(),
                message: format!("it did not stop within {seconds} s"),
            });
        }
        self.decide();
    }

    /// When [`Leader::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.stop_by.filter(|_| self.phase != Phase::Over)
    }

    /// The next thing to be told to all.
    pub fn poll_action(&mut self) -> Option<LeaderAction> {
        self.actions.pop_front()
    }

    /// How the job ended, once it is over.
    pub fn end(&self) -> Option<&JobEnd> {
        self.end.as_ref()
    }

    /// The processes that are not there yet.
    pub fn absent(&self) -> Vec<u32> {
        self.numbers(|member| !member.joined)
    }

    fn missing_ends(&self) -> Vec<u32> {
        self.numbers(|member| member.end.is_none() && !member.lost)
    }

    fn numbers(&self, is_meant: impl Fn(&Member) -> bool) -> Vec<u32> {
        let numbered = (0..).zip(&self.members);
        numbered
            .filter(|(_, member)| is_meant(member))
            .map(|(process, _)| process)
            .collect()
    }

    fn open_if_all_are_there(&mut self) {
        if self.phase == Phase::Gathering && self.absent().is_empty() {
            self.phase = Phase::Opening;
            self.actions.push_back(LeaderAction::Open);
        }
    }

    fn stop(&mut self, way: StopWay) {
        let told = match way {
            StopWay::End => &mut self.told_end,
            StopWay::Stop => &mut self.told_stop,
        };
        if !std::mem::replace(told, true) && self.phase != Phase::Over {
            self.actions.push_back(LeaderAction::Stop(way));
        }
    }

    fn fail(&mut self, now: Duration, fault: Fault) {
        self.keep(fault);
        self.cancel(now, CancelCause::Failure);
    }

    fn keep(&mut self, fault: Fault) {
        let has_cause = self.fault.as_ref().is_some_and(|fault| fault.is_cause);
        if self.fault.is_none() || (fault.is_cause && !has_cause) {
            self.fault = Some(fault);
        }
    }

    fn cancel(&mut self, now: Duration, cause: CancelCause) {
        match self.phase {
            // Nothing runs anywhere, so there is nothing to wait for.
            Phase::Gathering => self.decide(),
            Phase::Opening | Phase::Running if self.stop_by.is_none() => {
                self.stop_by = Some(now.saturating_add(self.options.stop_within));
                self.actions.push_back(LeaderAction::Cancel(cause));
            }
            Phase::Opening | Phase::Running | Phase::Over => {}
        }
    }

    fn end_if_all_are_over(&mut self) {
        if self.phase != Phase::Over && self.missing_ends().is_empty() {
            self.decide();
        }
    }

    fn decide(&mut self) {
        if self.phase == Phase::Over {
            return;
        }
        self.phase = Phase::Over;
        let end = self.outcome();
        self.end = Some(end.clone());
        self.actions.push_back(LeaderAction::Over(end));
    }

    /// The cause of a failure is what failed by itself, not what lost its peer; a job that was
    /// cancelled may lose peers on the way.
    fn outcome(&self) -> JobEnd {
        match (&self.fault, self.cancelled) {
            (Some(fault), _) if fault.is_cause => return JobEnd::Failed(fault.clone()),
            (_, Some(cause)) => return JobEnd::Cancelled(cause),
            (Some(fault), None) => return JobEnd::Failed(fault.clone()),
            (None, None) => {}
        }
        let ended_as = |end| {
            let mut members = (0..).zip(&self.members);
            members.find(|(_, member)| member.end == Some(end))
        };
        if let Some((process, _)) = ended_as(ProcessEnd::Failed) {
            return JobEnd::Failed(Fault {
                process,
                is_cause: false,
                message: "it failed without saying why".to_owned(),
            });
        }
        match (
            ended_as(ProcessEnd::Cancelled),
            ended_as(ProcessEnd::Stopped),
        ) {
            (Some(_), _) => JobEnd::Cancelled(CancelCause::Asked),
            (None, Some(_)) => JobEnd::Stopped,
            (None, None) => JobEnd::Ended,
        }
    }
}
