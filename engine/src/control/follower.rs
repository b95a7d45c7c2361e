//! What a process other than process 0 does as that says.

use std::collections::VecDeque;

use super::message::{CancelCause, Fault, JobEnd, Message, StopWay};

/// Does in a process what process 0 says, and knows what to do when that is gone.
#[derive(Debug, Default)]
pub struct Follower {
    opened: bool,
    started: bool,
    cancelled: bool,
    told_end: bool,
    told_stop: bool,
    /// A report is among the actions.
    reports: bool,
    actions: VecDeque<FollowerAction>,
    end: Option<JobEnd>,
}

/// What a process is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowerAction {
    /// Make and open everything. Where each process listens for data edges.
    Open(Vec<String>),
    /// Run.
    Start,
    /// Stop the sources.
    Stop(StopWay),
    /// Cancel everything.
    Cancel(CancelCause),
    /// Tell what the tasks report now.
    Report,
}

impl Follower {
    /// A process that waits to be told.
    pub fn new() -> Self {
        Self::default()
    }

    /// Process 0 has said something. What has no place here changes nothing, and what is said
    /// twice counts once.
    pub fn handle_message(&mut self, message: Message) {
        if self.end.is_some() {
            return;
        }
        match message {
            Message::Open(addresses) if !std::mem::replace(&mut self.opened, true) => {
                self.actions.push_back(FollowerAction::Open(addresses));
            }
            Message::Start if self.opened && !std::mem::replace(&mut self.started, true) => {
                self.actions.push_back(FollowerAction::Start);
            }
            Message::Stop(way) => self.stop(way),
            Message::Cancel(cause) => self.cancel(cause),
            // Whoever asks again before it is answered gets one answer.
            Message::ReportWanted if !std::mem::replace(&mut self.reports, true) => {
                self.actions.push_back(FollowerAction::Report);
            }
            Message::Over(end) => {
                // Where the tasks here are over this finds nothing to do.
                self.cancel(CancelCause::Failure);
                self.end = Some(end);
            }
            _ => {}
        }
    }

    /// The connection to process 0 is over, and why. If the job was not, it has failed.
    pub fn handle_lost(&mut self, cause: impl Into<String>) {
        if self.end.is_none() {
            self.cancel(CancelCause::Failure);
            self.end = Some(JobEnd::Failed(Fault {
                process: 0,
                is_cause: true,
                message: cause.into(),
            }));
        }
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<FollowerAction> {
        let action = self.actions.pop_front();
        self.reports &= action != Some(FollowerAction::Report);
        action
    }

    /// How the job ended in all processes, once that is known.
    pub fn end(&self) -> Option<&JobEnd> {
        self.end.as_ref()
    }

    fn stop(&mut self, way: StopWay) {
        let told = match way {
            StopWay::End => &mut self.told_end,
            StopWay::Stop => &mut self.told_stop,
        };
        if !std::mem::replace(told, true) {
            self.actions.push_back(FollowerAction::Stop(way));
        }
    }

    fn cancel(&mut self, cause: CancelCause) {
        if !std::mem::replace(&mut self.cancelled, true) {
            self.actions.push_back(FollowerAction::Cancel(cause));
        }
    }
}
