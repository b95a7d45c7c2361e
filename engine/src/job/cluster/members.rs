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
    /// How many tasks it has.
    tasks: usize,
    /// What is missing in its report, if something is.
    missing: Option<String>,
    end: Option<ProcessEnd>,
    /// Its connection has ended, or nothing more is expected of it.
    has_left: bool,
    said_goodbye: bool,
}

impl Members {
    /// None but process 0 is there. `tasks` is how many tasks each process has.
    pub(super) fn new(tasks: &[usize]) -> Self {
        let members = tasks.iter().map(|&tasks| Member {
            tasks,
            ..Member::default()
        });
        Self(members.collect())
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
            connection.flush();
        }
    }

    /// Asks those for what they report that have taken what they were told before: whoever is
    /// slow is not asked again and again.
    pub(super) fn request_progress(&mut self, now: Duration) {
        let connections = self.connections_mut();
        for connection in connections.filter(|connection| connection.is_flushed()) {
            connection.push(now, &Message::ReportWanted);
            connection.flush();
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
            let Some(mut connection) = member.connection.take() else {
                continue;
            };
            connection.poll(now);
            while let Some(message) = connection.poll_message() {
                member.keep(&message, counters, &|| hosts.name(process));
                leader.handle_message(now, process as u32, message);
            }
            if member.said_goodbye && connection.is_flushed() {
                connection.finish();
                member.said_goodbye = false;
            }
            if let Some(error) = connection.error()
                && !std::mem::replace(&mut member.has_left, true)
            {
                let name = hosts.name(process);
                leader.handle_lost(now, process as u32, format!("{name}: {error}"));
            }
            member.connection = Some(connection);
        }
    }

    /// The job is over, and all have been told so as far as they can be.
    pub(super) fn say_goodbye(&mut self) {
        for member in &mut self.0 {
            member.said_goodbye = true;
            if let Some(connection) = &mut member.connection {
                connection.flush();
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
            missing: member.missing.clone(),
        });
        reports.collect()
    }

    /// Adds what the connections wait for.
    pub(super) fn wait_for<'a>(&'a self, wanted: &mut Vec<PollFd<'a>>, until: &mut Duration) {
        for member in &self.0 {
            if let Some(connection) = &member.connection {
                let is_known = member.has_left;
                wait_for(connection, is_known, wanted, until);
            }
        }
    }

    fn connections_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.0
            .iter_mut()
            .filter_map(|member| member.connection.as_mut())
    }
}

impl Member {
    /// Keeps what a message reports, the last word of the process being the last. A report that
    /// is of no use is no reason for the job to fail.
    fn keep(&mut self, message: &Message, counters: &[ConnectorStats], name: &dyn Fn() -> String) {
        let (bytes, end) = match message {
            Message::Report(bytes) => (bytes, None),
            Message::Finished(end, bytes) => (bytes, Some(*end)),
            _ => return,
        };
        if self.end.is_some() {
            return;
        }
        self.end = end;
        let is_last = end.is_some();
        let missing = match Report::decode(bytes, self.tasks) {
            Ok(report) => {
                self.report = report;
                if is_last {
                    add(counters, &self.report);
                }
                self.report.left_out.what().map(str::to_owned)
            }
            Err(problem) => Some(format!("its report, which cannot be read: {problem}")),
        };
        if let Some(missing) = &missing
            && is_last
        {
            let process = name();
            tracing::warn!(process, missing, "what a process did is not known in full");
        }
        self.missing = missing;
    }
}

/// What connectors of another process have read and written becomes part of what they have
/// altogether.
fn add(counters: &[ConnectorStats], report: &Report) {
    for (stats, delta) in counters.iter().zip(&report.counters) {
        stats.add(delta);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::super::tests::hello;
    use super::*;
    use crate::control::{ControlOptions, ControlSession, JobEnd, LeaderOptions, StopWay};

    /// Process 0 and the other end of its connection to process 1, which has one task.
    struct Led {
        leader: Leader,
        members: Members,
        other: ControlSession,
        stream: TcpStream,
        counters: Vec<ConnectorStats>,
    }

    impl Led {
        fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let (options, now) = (ControlOptions::default(), Duration::ZERO);
            let mut leader = Leader::new(LeaderOptions {
                processes: 2,
                stop_within: Duration::from_secs(7),
            });
            leader.handle_joined(1).unwrap();
            let mut members = Members::new(&[1, 1]);
            let connection = Connection::new(accepted, hello(0), options, now).unwrap();
            members.join(1, connection);
            Self {
                leader,
                members,
                other: ControlSession::new(hello(1), options, now),
                stream,
                counters: vec![ConnectorStats::default()],
            }
        }

        /// Process 1 says this, and process 0 hears it.
        fn says(&mut self, messages: &[Message]) {
            for message in messages {
                self.other.push(Duration::ZERO, message);
            }
            let mut bytes = Vec::new();
            self.other.poll_transmit(&mut bytes);
            self.stream.write_all(&bytes).unwrap();
            let hosts = "127.0.0.1:0,127.0.0.1:0".parse().unwrap();
            for _ in 0..100 {
                let (mut wanted, mut until) = (Vec::new(), Duration::from_millis(1));
                self.members.wait_for(&mut wanted, &mut until);
                super::super::sleep(&mut wanted, until);
                let leader = &mut self.leader;
                self.members
                    .poll(Duration::ZERO, leader, &hosts, &self.counters);
            }
        }

        fn reported(&self) -> ProcessReport {
            let hosts = "127.0.0.1:0,127.0.0.1:0".parse().unwrap();
            self.members.process_reports(&hosts).remove(1)
        }
    }

    fn report(rows: u64) -> Report {
        let mut report = Report {
            tasks: vec![TaskReport {
                rows_in: rows,
                ..TaskReport::default()
            }],
            ..Report::default()
        };
        report.counters.push(crate::connect::Counters {
            rows,
            ..crate::connect::Counters::default()
        });
        report
    }

    #[test]
    fn a_report_that_cannot_be_read_is_told_and_fails_nothing() {
        let mut led = Led::new();
        let last = Message::Finished(ProcessEnd::Ended, b"no report".to_vec());
        led.says(&[
            Message::Report(b"{".to_vec()),
            Message::Report(report(3).encode_progress()),
            last,
        ]);
        let reported = led.reported();
        assert_eq!(reported.end, Some(ProcessEnd::Ended));
        let missing = reported.missing.unwrap();
        assert!(missing.contains("cannot be read"), "{missing}");
        assert_eq!(reported.tasks[0].rows_in, 3, "what it told before is kept");
        led.leader.handle_message(
            Duration::ZERO,
            0,
            Message::Finished(ProcessEnd::Ended, Vec::new()),
        );
        assert_eq!(led.leader.end(), Some(&JobEnd::Ended));
    }

    #[test]
    fn the_last_word_of_a_process_is_its_last() {
        let mut led = Led::new();
        let finished = |rows, end| Message::Finished(end, report(rows).encode(1 << 20));
        led.says(&[
            finished(5, ProcessEnd::Ended),
            finished(7, ProcessEnd::Failed),
            Message::Report(report(9).encode_progress()),
            Message::Stop(StopWay::End),
        ]);
        let reported = led.reported();
        assert_eq!(reported.end, Some(ProcessEnd::Ended));
        assert_eq!(reported.missing, None);
        assert_eq!(reported.tasks[0].rows_in, 5);
        assert_eq!(led.counters[0].read().rows, 5, "it is counted once");
    }

    #[test]
    fn whoever_does_not_read_is_not_asked_again_and_again() {
        let mut led = Led::new();
        led.says(&[]);
        // More than the sockets hold.
        let long = Message::Report(vec![b' '; 8 << 20]);
        for _ in 0..4 {
            led.members.tell_all(Duration::ZERO, &long);
        }
        let unsent = |led: &Led| led.members.0[1].connection.as_ref().unwrap().unsent_bytes();
        let before = unsent(&led);
        assert!(before > 0, "it is not all sent");
        for _ in 0..1000 {
            led.members.request_progress(Duration::ZERO);
        }
        assert_eq!(unsent(&led), before);
    }
}
