//! The processes that run a job together, as one of them sees the others.
//!
//! Process 0 leads: every other process connects to it once ([`Cluster::gather`]), and the
//! connection stays for the life of the job. It is watched by the thread that watches over the
//! job, never by a worker. What is decided is decided in [`crate::control`]; here it is read
//! from sockets and written to them.

mod connection;
mod door;
mod error;
mod gather;
mod hosts;
mod members;
mod reports;

pub use error::GatherError;
pub use gather::ClusterOptions;
pub use hosts::Hosts;

use std::collections::VecDeque;
use std::time::Duration;

use ringway_shm::Bell;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Monotonic, process_cpu_time};
use crate::connect::ConnectorStats;
use crate::control::{
    CancelCause, Fault, Follower, FollowerAction, JobEnd, Leader, LeaderAction, Message,
    ProcessEnd, StopWay,
};
use crate::task::TaskReport;

use super::payload::Erased;
use super::remote::{MakeDriver, RemoteEdges, RemoteError, RunIdentity, WantedHalf};
use connection::Connection;
use members::Members;
use reports::{FINAL_BYTES_MAX, Report};

/// Time that process 0 waits at the end for the others to have heard of it.
const LINGER: Duration = Duration::from_secs(2);

/// The processes that run a job together, as one of them sees the others.
pub struct Cluster {
    clock: Clock,
    process: usize,
    hosts: Hosts,
    role: Role,
    run: RunIdentity,
    edges: Box<dyn RemoteEdges>,
    counters: Vec<ConnectorStats>,
    commands: VecDeque<Command>,
    /// When the end was known here.
    over_since: Option<Monotonic>,
}

/// What a process did in a job of several.
#[derive(Clone, Debug, Default)]
pub struct ProcessReport {
    /// The number and the address of the process.
    pub name: String,
    /// How its tasks ended; `None` where it was lost before.
    pub end: Option<ProcessEnd>,
    /// CPU time of the process, user and system.
    pub cpu: Duration,
    /// What each of its tasks did.
    pub tasks: Vec<TaskReport>,
    /// What is missing in this report, because it was too much to be told or could not be
    /// read; the sums of the job are without it.
    pub missing: Option<String>,
}

/// What this process is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start,
    Stop(StopWay),
    Cancel,
    Report,
}

enum Role {
    Leader {
        leader: Leader,
        members: Members,
    },
    Follower {
        follower: Follower,
        connection: Box<Connection>,
    },
}

impl Cluster {
    /// The number of this process.
    pub fn process(&self) -> usize {
        self.process
    }

    /// Whether this process leads the others.
    pub fn leads(&self) -> bool {
        self.process == 0
    }

    /// A process, for people: its number and its address.
    pub fn name_of(&self, process: usize) -> String {
        self.hosts.name(process)
    }

    /// Opens edges to other processes.
    pub(super) fn open(&mut self, wanted: Vec<WantedHalf>) -> Result<Vec<Erased>, RemoteError> {
        self.edges.open(&self.run, wanted)
    }

    /// How workers make the drivers of connections, if they do.
    pub(super) fn drivers(&self) -> Option<MakeDriver> {
        self.edges.drivers()
    }

    /// Whether all edges to other processes have their other half.
    pub(super) fn poll_edges(&mut self) -> Result<bool, RemoteError> {
        self.edges.poll_opened()
    }

    /// Everything of this process is open.
    pub(super) fn opened(&mut self) {
        self.say(Message::Opened);
    }

    /// Something failed in this process.
    pub(super) fn failed(&mut self, is_cause: bool, message: String) {
        self.say(Message::Failure(Fault {
            process: self.process as u32,
            is_cause,
            message,
        }));
    }

    /// All tasks of this process are over.
    pub(super) fn finished(&mut self, end: ProcessEnd, tasks: &[TaskReport]) {
        let report = self.report(tasks);
        match &mut self.role {
            Role::Leader { members, .. } => {
                members.set_report(0, end, report);
                self.say(Message::Finished(end, Vec::new()));
            }
            Role::Follower { .. } => {
                self.say(Message::Finished(end, report.encode(FINAL_BYTES_MAX)));
            }
        }
    }

    /// Somebody asks the job to stop.
    pub(super) fn ask_to_stop(&mut self, way: StopWay) {
        self.say(Message::Stop(way));
    }

    /// Somebody cancels the job.
    pub(super) fn ask_to_cancel(&mut self, cause: CancelCause) {
        self.say(Message::Cancel(cause));
    }

    /// Tells process 0 what the tasks report now, unless it has not taken what it was told
    /// before: it will ask again.
    pub(super) fn tell_progress(&mut self, tasks: &[TaskReport]) {
        if let Role::Follower { connection, .. } = &self.role
            && connection.is_flushed()
        {
            let report = self.report(tasks).encode_progress();
            self.say(Message::Report(report));
        }
    }

    /// Asks the others what their tasks report.
    pub(super) fn request_progress(&mut self) {
        let now = self.clock.now().0;
        if let Role::Leader { members, .. } = &mut self.role {
            members.request_progress(now);
        }
    }

    /// What the tasks of other processes last reported, as far as this process is told.
    pub(super) fn progress(&self) -> impl Iterator<Item = &TaskReport> {
        let members = match &self.role {
            Role::Leader { members, .. } => Some(members),
            Role::Follower { .. } => None,
        };
        members.into_iter().flat_map(Members::progress)
    }

    /// What every process did, as far as this process is told: process 0 is told all.
    pub(super) fn process_reports(&self) -> Vec<ProcessReport> {
        match &self.role {
            Role::Leader { members, .. } => members.process_reports(&self.hosts),
            Role::Follower { .. } => Vec::new(),
        }
    }

    /// Reads and writes what can be.
    pub(super) fn poll(&mut self) {
        let now = self.clock.now();
        match &mut self.role {
            Role::Leader { leader, members } => {
                members.poll(now.0, leader, &self.hosts, &self.counters);
                leader.handle_timeout(now.0);
            }
            Role::Follower {
                follower,
                connection,
            } => {
                connection.poll(now.0);
                while let Some(message) = connection.poll_message() {
                    follower.handle_message(message);
                }
                if let Some(error) = connection.error() {
                    follower.handle_lost(format!("{}: {error}", self.hosts.name(0)));
                }
            }
        }
        self.act(now);
    }

    /// What this process is to do next.
    pub(super) fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// How the job ended in all processes, once that is known.
    pub(super) fn end(&self) -> Option<&JobEnd> {
        match &self.role {
            Role::Leader { leader, .. } => leader.end(),
            Role::Follower { follower, .. } => follower.end(),
        }
    }

    /// Whether nothing is left to do here: the end is known, and to the others too as far as
    /// they can be told.
    pub(super) fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        let Some(since) = self.over_since else {
            return false;
        };
        match &mut self.role {
            Role::Leader { members, .. } => members.have_left() || now.since(since) > LINGER,
            Role::Follower { .. } => true,
        }
    }

    /// Sleeps until something comes, the armed `bell` rings, or `timeout` has passed.
    pub(super) fn park(&self, bell: &Bell, timeout: Duration) {
        let now = self.clock.now().0;
        let mut until = now.saturating_add(timeout);
        let mut wanted: Vec<PollFd<'_>> = Vec::new();
        if !self.commands.is_empty() {
            until = now;
        }
        wanted.extend(
            bell.as_fd()
                .map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)),
        );
        match &self.role {
            Role::Leader { leader, members } => {
                members.wait_for(&mut wanted, &mut until);
                until = until.min(leader.poll_timeout().unwrap_or(until));
            }
            Role::Follower {
                follower,
                connection,
            } => {
                let is_known = follower.end().is_some();
                wait_for(connection, is_known, &mut wanted, &mut until);
            }
        }
        sleep(&mut wanted, until.saturating_sub(now));
        bell.clear();
    }

    fn report(&self, tasks: &[TaskReport]) -> Report {
        Report {
            tasks: tasks.to_vec(),
            counters: self.counters.iter().map(ConnectorStats::read).collect(),
            cpu: process_cpu_time(),
            ..Report::default()
        }
    }

    /// Tells process 0 something, also where it is this one.
    fn say(&mut self, message: Message) {
        let now = self.clock.now();
        match &mut self.role {
            Role::Leader { leader, .. } => leader.handle_message(now.0, 0, message),
            Role::Follower { connection, .. } => {
                connection.push(now.0, &message);
                connection.flush();
            }
        }
        self.act(now);
    }

    /// Does what was decided.
    fn act(&mut self, now: Monotonic) {
        match &mut self.role {
            Role::Leader { leader, members } => {
                while let Some(action) = leader.poll_action() {
                    let (message, command) = match action {
                        LeaderAction::Start => (Message::Start, Some(Command::Start)),
                        LeaderAction::Stop(way) => (Message::Stop(way), Some(Command::Stop(way))),
                        LeaderAction::Cancel(cause) => {
                            (Message::Cancel(cause), Some(Command::Cancel))
                        }
                        LeaderAction::Open => (Message::Open(self.run.addresses.clone()), None),
                        LeaderAction::Over(end) => (Message::Over(end), Some(Command::Cancel)),
                    };
                    members.tell_all(now.0, &message);
                    self.commands.extend(command);
                }
            }
            Role::Follower { follower, .. } => {
                while let Some(action) = follower.poll_action() {
                    self.commands.push_back(match action {
                        FollowerAction::Start => Command::Start,
                        FollowerAction::Stop(way) => Command::Stop(way),
                        FollowerAction::Cancel(_) => Command::Cancel,
                        FollowerAction::Report => Command::Report,
                        // It was opened when the processes gathered.
                        FollowerAction::Open(_) => continue,
                    });
                }
            }
        }
        if self.end().is_some() && self.over_since.is_none() {
            self.over_since = Some(now);
            if let Role::Leader { members, .. } = &mut self.role {
                members.say_goodbye();
            }
        }
    }
}

/// Adds what a connection waits for. One that has something to be looked at waits for nothing:
/// what was read already, or its loss unless that `is_known`.
fn wait_for<'a>(
    connection: &'a Connection,
    is_known: bool,
    wanted: &mut Vec<PollFd<'a>>,
    until: &mut Duration,
) {
    if connection.has_message() || (connection.error().is_some() && !is_known) {
        *until = Duration::ZERO;
    }
    if !connection.is_over() {
        wanted.push(PollFd::new(connection.stream(), connection.wanted()));
        *until = connection.poll_timeout().unwrap_or(*until).min(*until);
    }
}

/// Sleeps until a descriptor is ready. What is ready is found by looking.
fn sleep(wanted: &mut [PollFd<'_>], timeout: Duration) {
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted wait is a wake for no reason, which is allowed here.
    let _ = poll(wanted, timeout.as_ref());
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::control::{ControlOptions, Hello, LeaderOptions};

    /// Much longer than any of these waits may last.
    const LONG: Duration = Duration::from_secs(60);

    struct NoEdges;

    impl RemoteEdges for NoEdges {
        fn port(&self) -> Option<u16> {
            Some(0)
        }

        fn open(
            &mut self,
            _: &RunIdentity,
            _: Vec<WantedHalf>,
        ) -> Result<Vec<Erased>, RemoteError> {
            Ok(Vec::new())
        }
    }

    fn cluster(role: Role) -> Cluster {
        Cluster {
            clock: Clock::start(),
            process: 0,
            hosts: "127.0.0.1:0,127.0.0.1:0".parse().unwrap(),
            role,
            run: RunIdentity {
                job: 1,
                attempt: 1,
                process: 0,
                addresses: Vec::new(),
            },
            edges: Box::new(NoEdges),
            counters: Vec::new(),
            commands: VecDeque::new(),
            over_since: None,
        }
    }

    pub(super) fn hello(process: u32) -> Hello {
        Hello {
            job: "flights".to_owned(),
            version: "1".to_owned(),
            plan: 1,
            attempt: 1,
            process,
            processes: 2,
            run: 0,
            data_port: 0,
        }
    }

    /// Process 1, and process 0 at the other end of its connection.
    fn follower() -> (Cluster, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let now = Duration::ZERO;
        let options = ControlOptions::default();
        let connection = |stream, process| Connection::new(stream, hello(process), options, now);
        let role = Role::Follower {
            follower: Follower::new(),
            connection: Box::new(connection(stream, 1).unwrap()),
        };
        (cluster(role), connection(accepted, 0).unwrap())
    }

    #[test]
    fn what_was_decided_here_is_done_without_a_wait() {
        let leader = Leader::new(LeaderOptions {
            processes: 1,
            stop_within: LONG,
        });
        let members = Members::new(&[0]);
        let mut alone = cluster(Role::Leader { leader, members });
        alone.opened();
        alone.park(&Bell::descriptor().unwrap(), LONG);
        assert_eq!(alone.next_command(), Some(Command::Start));
    }

    #[test]
    fn what_came_while_something_was_said_is_heard_without_a_wait() {
        let (mut follower, mut leader) = follower();
        let bell = Bell::descriptor().unwrap();
        let now = Duration::ZERO;
        leader.push(now, &Message::Open(Vec::new()));
        leader.push(now, &Message::Start);
        leader.flush();
        follower.opened();
        let mut commands = Vec::new();
        while commands.is_empty() {
            follower.park(&bell, LONG);
            follower.poll();
            commands.extend(follower.next_command());
        }
        assert_eq!(commands, [Command::Start]);
        // Nor is a loss that is found out when something is said.
        drop(leader);
        while follower.end().is_none() {
            follower.opened();
            follower.park(&bell, LONG);
            follower.poll();
        }
    }

    #[test]
    fn a_peer_that_says_much_at_once_is_heard_a_part_at_a_time() {
        let (mut follower, mut leader) = follower();
        leader.push(Duration::ZERO, &Message::Open(Vec::new()));
        leader.flush();
        // Frames without a body: kind 171, a report is wanted.
        let flood = [0, 0, 0, 1, 171].repeat(300_000);
        let mut stream = leader.stream().try_clone().unwrap();
        let flooding = std::thread::spawn(move || {
            stream.set_nonblocking(false).unwrap();
            let _ = stream.write_all(&flood);
        });
        let Role::Follower { connection, .. } = &mut follower.role else {
            panic!("it follows")
        };
        let mut most = 0;
        let mut heard = 0;
        while heard < 300_000 {
            connection.poll(Duration::ZERO);
            let mut waiting = 0;
            while connection.poll_message().is_some() {
                waiting += 1;
            }
            heard += waiting;
            most = most.max(waiting);
        }
        // What one read brings beyond the bound is there too.
        assert!(most <= 1024 + (64 << 10) / 5 + 1, "{most}");
        flooding.join().unwrap();
    }
}
