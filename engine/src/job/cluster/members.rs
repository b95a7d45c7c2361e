//! The processes that process 0 leads.

use std::time::Duration;

use rustix::event::PollFd;

use crate::connect::ConnectorStats;
use crate::control::{Leader, Message, ProcessEnd};
use crate::task::TaskReport;

use super::connection::Connection;
use super::reports::Report;
use super::{Hosts, ProcessReport, wait_for};

/// The processes that process 0 leads, by their numbers; it stands among them itself, without
/// a connection.
pub(super) struct Members(Vec<Member>);

#[derive(Default)]
struct Member {
    connection: Option<Connection>,
    report: Report,
    end: Option<ProcessEnd>,
    /// Its connection has ended, or nothing more is expected of it.
    has_left: bool,
    said_goodbye: bool,
}

impl Members {
    /// None but process 0 of `processes` is there.
    pub(super) fn new(processes: usize) -> Self {
        Self((0..processes).map(|_| Member::default()).collect())
    }

    /// A process is there.
    pub(super) fn join(&mut self, process: u32, connection: Connection) {
        if let Some(member) = self.0.get_mut(process as usize) {
            member.connection = Some(connection);
        }
    }

    /// Keeps what the tasks of a process reported last.
    pub(super) fn set_report(&mut self, process: usize, end: ProcessEnd, report: Report) {
        let member = &mut self.0[process];
        member.end = Some(end);
        member.report = report;
    }

    /// Tells all processes that are there something.
    pub(super) fn tell_all(&mut self, now: Duration, message: &Message) {
        for connection in self.connections_mut() {
            connection.push(now, message);
            connection.poll(now);
        }
    }

    /// Reads and writes what can be, and tells the leader what came.
    pub(super) fn poll(
        &mut self,
        now: Duration,
        leader: &mut Leader,
        hosts: &Hosts,
        counters: &[ConnectorStats],
    ) {
        for (process, member) in self.0.iter_mut().enumerate() {
            let Some(connection) = &mut member.connection else {
                continue;
            };
            connection.poll(now);
            let mut problem = None;
            while let Some(message) = connection.poll_message() {
                let kept = keep(&mut member.report, &message);
                problem = problem.or(kept.err());
                if let Message::Finished(end, _) = &message
                    && member.end.replace(*end).is_none()
                {
                    add(counters, &member.report);
                }
                leader.handle_message(now, process as u32, message);
            }
            if member.said_goodbye && connection.is_flushed() {
                connection.finish();
                member.said_goodbye = false;
            }
            let error = connection.error().map(ToString::to_string);
            if let Some(error) = problem.or(error) {
                member.has_left = true;
                let name = hosts.name(process);
                leader.handle_lost(now, process as u32, format!("{name}: {error}"));
            }
        }
    }

    /// The job is over, and all have been told so as far as they can be.
    pub(super) fn say_goodbye(&mut self, now: Duration) {
        for member in &mut self.0 {
            member.said_goodbye = true;
            if let Some(connection) = &mut member.connection {
                connection.poll(now);
            }
        }
    }

    /// Whether all others have heard that the job is over, and have left.
    pub(super) fn have_left(&self) -> bool {
        let mut connected = self.0.iter().filter(|member| member.connection.is_some());
        connected.all(|member| member.has_left)
    }

    /// What the tasks of the other processes last reported.
    pub(super) fn progress(&self) -> impl Iterator<Item = &TaskReport> {
        self.0
            .iter()
            .skip(1)
            .flat_map(|member| &member.report.tasks)
    }

    /// What each process did.
    pub(super) fn process_reports(&self, hosts: &Hosts) -> Vec<ProcessReport> {
        let numbered = self.0.iter().enumerate();
        let reports = numbered.map(|(process, member)| ProcessReport {
            name: hosts.name(process),
            end: member.end,
            cpu: member.report.cpu,
            tasks: member.report.tasks.clone(),
        });
        reports.collect()
    }

    /// Adds what the connections wait for.
    pub(super) fn wait_for<'a>(&'a self, wanted: &mut Vec<PollFd<'a>>, until: &mut Duration) {
        for connection in self
            .0
            .iter()
            .filter_map(|member| member.connection.as_ref())
        {
            wait_for(connection, wanted, until);
        }
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.0
            .iter_mut()
            .filter_map(|member| member.connection.as_mut())
    }
}

/// Keeps what a message reports.
fn keep(report: &mut Report, message: &Message) -> Result<(), String> {
    if let Message::Finished(_, bytes) | Message::Report(bytes) = message {
        *report =
            Report::decode(bytes).map_err(|error| format!("its report cannot be read: {error}"))?;
    }
    Ok(())
}

/// What connectors of another process have read and written becomes part of what they have
/// altogether.
fn add(counters: &[ConnectorStats], report: &Report) {
    for (stats, delta) in counters.iter().zip(&report.counters) {
        stats.add(delta);
    }
}
