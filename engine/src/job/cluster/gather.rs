//! How the processes of a job come together.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::time::Duration;

use crate::clock::Clock;
use crate::connect::ConnectorStats;
use crate::control::{
    CancelCause, ControlError, ControlOptions, Fault, Follower, FollowerAction, Hello, JobEnd,
    Leader, LeaderAction, LeaderOptions, Message,
};
use crate::job::plan::Plan;
use crate::job::remote::{RemoteEdges, RunIdentity};
use crate::job::run::STOP_TIME_MAX;
use ringway_netio::net::{ConnectOptions, Connecting, HostPort, bind};

use super::connection::Connection;
use super::door::Door;
use super::members::Members;
use super::{Cluster, GatherError, Hosts, Role, sleep, wait_for};

/// How often whoever waits is asked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time beyond their own that processes have to say that they did not stop in time.
const STOP_SLACK: Duration = Duration::from_secs(2);

/// With what a process finds the others.
#[derive(Debug)]
pub struct ClusterOptions {
    /// Where all processes are.
    pub hosts: Hosts,
    /// The number of this process.
    pub process: usize,
    /// The attempt of the job. Default: 1.
    pub attempt: u32,
    /// At which address of its host process 0 waits for the others. Default: that of `hosts`.
    pub bind_host: Option<String>,
    /// For process 0: a socket that listens already, instead of one of its own.
    pub listener: Option<TcpListener>,
    /// Time to wait for the others. Default: 30 s.
    pub connect_timeout: Duration,
    /// How the control sessions are kept.
    pub control: ControlOptions,
    /// What the connectors of the job have read and written; all processes give them in the
    /// same order. What those of the others have is added to those of process 0 at the end.
    pub counters: Vec<ConnectorStats>,
}

impl ClusterOptions {
    /// The defaults for process `process` of those at `hosts`.
    pub fn new(hosts: Hosts, process: usize) -> Self {
        Self {
            hosts,
            process,
            attempt: 1,
            bind_host: None,
            listener: None,
            connect_timeout: Duration::from_secs(30),
            control: ControlOptions::default(),
            counters: Vec::new(),
        }
    }

    fn validate(&self) -> Result<(), String> {
        if self.connect_timeout.is_zero() {
            return Err("the other processes need some time to come".to_owned());
        }
        self.control.validate()
    }
}

impl Cluster {
    /// Waits until all processes are there. `edges` opens edges between them; `is_cancelled` is
    /// asked now and then whether to give up.
    ///
    /// The plan must be of as many processes as there are hosts, and this one among them.
    ///
    /// # Errors
    /// See [`GatherError`]; nothing has run anywhere.
    ///
    /// # Panics
    /// When the plan and the hosts are of different numbers of processes.
    pub fn gather(
        plan: &Plan,
        options: ClusterOptions,
        edges: Box<dyn RemoteEdges>,
        is_cancelled: &mut dyn FnMut() -> Option<CancelCause>,
    ) -> Result<Self, GatherError> {
        assert_eq!(plan.processes, options.hosts.count(), "a host a process");
        assert!(options.process < plan.processes, "one of the processes");
        options.validate().map_err(GatherError::Failed)?;
        let gathering = Gathering {
            clock: Clock::start(),
            own: hello(plan, &options, edges.port()),
            tasks: tasks_of(plan),
            options,
            is_cancelled,
        };
        match gathering.own.process {
            0 => gathering.lead(edges),
            _ => gathering.follow(edges),
        }
    }
}

/// How many tasks each process has.
fn tasks_of(plan: &Plan) -> Vec<usize> {
    let mut tasks = vec![0; plan.processes];
    let processes = plan.chains.iter().flat_map(|chain| &chain.processes);
    processes.for_each(|&process| tasks[process] += 1);
    tasks
}

fn hello(plan: &Plan, options: &ClusterOptions, data_port: Option<u16>) -> Hello {
    Hello {
        job: plan.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.hash,
        attempt: options.attempt,
        process: options.process as u32,
        processes: plan.processes as u32,
        run: match options.process {
            0 => random(),
            _ => 0,
        },
        // Process 0 tells where it listens itself, with Open.
        data_port: data_port.unwrap_or(0),
    }
}

fn cannot_listen(error: std::io::Error) -> GatherError {
    GatherError::Failed(format!("process 0 cannot wait for the others: {error}"))
}

/// A number that two runs do not share.
fn random() -> u128 {
    let keys = RandomState::new();
    u128::from(keys.hash_one(0)) << 64 | u128::from(keys.hash_one(1))
}

struct Gathering<'a> {
    clock: Clock,
    own: Hello,
    /// How many tasks each process has.
    tasks: Vec<usize>,
    options: ClusterOptions,
    is_cancelled: &'a mut dyn FnMut() -> Option<CancelCause>,
}

impl Gathering<'_> {
    fn lead(mut self, mut edges: Box<dyn RemoteEdges>) -> Result<Cluster, GatherError> {
        let listener = match self.options.listener.take() {
            Some(listener) => listener,
            None => {
                let own = self.options.hosts.of(0);
                let host = self.options.bind_host.as_ref().unwrap_or(&own.host);
                bind(&HostPort::new(host, own.port))?.listener
            }
        };
        let data_port = match edges.port() {
            Some(port) => port,
            None => listener.local_addr().map_err(cannot_listen)?.port(),
        };
        let mut door = Door::new(listener).map_err(cannot_listen)?;
        let mut leader = Leader::new(LeaderOptions {
            processes: self.own.processes,
            stop_within: STOP_TIME_MAX + STOP_SLACK,
        });
        let mut members = Members::new(&self.tasks);
        let mut addresses = vec![self.address(0, data_port)];
        addresses.resize(self.options.hosts.count(), String::new());
        loop {
            let now = self.clock.now().0;
            door.accept(now, &self.own, self.options.control);
            for (peer, connection) in door.let_in(now, &mut leader) {
                let process = peer.process as usize;
                addresses[process] = self.address(process, peer.data_port);
                members.join(peer.process, connection);
            }
            members.poll(now, &mut leader, &self.options.hosts, &[]);
            self.give_up(now, &mut leader);
            match leader.poll_action() {
                Some(LeaderAction::Open) => {
                    // From now on whoever comes here is an edge.
                    edges.take_listener(door.into_listener().map_err(cannot_listen)?);
                    members.tell_all(now, &Message::Open(addresses.clone()));
                    let run = self.run(self.own.run, addresses);
                    return Ok(self.cluster(Role::Leader { leader, members }, run, edges));
                }
                Some(LeaderAction::Over(end)) => {
                    members.tell_all(now, &Message::Over(end.clone()));
                    members.say_goodbye();
                    self.part(&mut leader, &mut members);
                    return Err(self.ended(end, &leader, door.refused()));
                }
                Some(_) => {}
                None => {
                    let mut until = now + LOOK_EVERY;
                    let mut wanted = door.wanted(now, &mut until);
                    members.wait_for(&mut wanted, &mut until);
                    sleep(&mut wanted, until.saturating_sub(now));
                }
            }
        }
    }

    fn follow(mut self, edges: Box<dyn RemoteEdges>) -> Result<Cluster, GatherError> {
        let mut connection = self.connect()?;
        let mut follower = Follower::new();
        let mut asked = None;
        loop {
            let now = self.clock.now().0;
            connection.poll(now);
            while let Some(message) = connection.poll_message() {
                follower.handle_message(message);
            }
            if let Some(FollowerAction::Open(addresses)) = follower.poll_action() {
                let run = connection.peer().map_or(0, |peer| peer.run);
                let run = self.run(run, addresses);
                let role = Role::Follower {
                    follower,
                    connection: Box::new(connection),
                };
                return Ok(self.cluster(role, run, edges));
            }
            match follower.end() {
                Some(JobEnd::Cancelled(cause)) => return Err(GatherError::Cancelled(*cause)),
                Some(JobEnd::Failed(fault)) => return Err(GatherError::Failed(fault.to_string())),
                Some(end) => return Err(GatherError::Failed(format!("the job is over: {end:?}"))),
                None => {}
            }
            if let Some(error) = connection.error() {
                return Err(self.turned_away(error));
            }
            if asked.is_none() {
                asked = (self.is_cancelled)();
                if let Some(cause) = asked {
                    connection.push(now, &Message::Cancel(cause));
                    connection.poll(now);
                    return Err(GatherError::Cancelled(cause));
                }
            }
            let (mut wanted, mut until) = (Vec::new(), now + LOOK_EVERY);
            wait_for(&connection, false, &mut wanted, &mut until);
            sleep(&mut wanted, until.saturating_sub(now));
        }
    }

    /// Connects to process 0, which may be starting still.
    fn connect(&mut self) -> Result<Connection, GatherError> {
        let options = ConnectOptions {
            time_limit: self.options.connect_timeout,
            ..ConnectOptions::default()
        };
        let to = self.options.hosts.of(0);
        let mut connecting = Connecting::start(to, &options, self.clock.now().0);
        loop {
            let now = self.clock.now().0;
            if let Some(stream) = connecting.poll(now)? {
                // Process 0 may have others at its door that it has to let in first.
                let control = ControlOptions {
                    greet_within: self.options.connect_timeout,
                    ..self.options.control
                };
                return Connection::new(stream, self.own.clone(), control, now)
                    .map_err(|error| GatherError::Failed(format!("process 0 ({to}): {error}")));
            }
            if let Some(cause) = (self.is_cancelled)() {
                return Err(GatherError::Cancelled(cause));
            }
            connecting.wait(now);
        }
    }

    /// Ends the waiting where it has lasted too long, or somebody says so.
    fn give_up(&mut self, now: Duration, leader: &mut Leader) {
        if let Some(cause) = (self.is_cancelled)() {
            leader.handle_message(now, 0, Message::Cancel(cause));
        }
        if now >= self.options.connect_timeout && !leader.absent().is_empty() {
            let message = format!("{} did not come", self.names(&leader.absent()).join(", "));
            let fault = Fault {
                process: 0,
                is_cause: true,
                message,
            };
            leader.handle_message(now, 0, Message::Failure(fault));
        }
    }

    /// Waits a moment for the processes that are there to hear that nothing comes of it.
    fn part(&self, leader: &mut Leader, members: &mut Members) {
        let until = self.clock.now().after(super::LINGER);
        while !members.have_left() && self.clock.now() < until {
            let now = self.clock.now().0;
            members.poll(now, leader, &self.options.hosts, &[]);
            let (mut wanted, mut soon) = (Vec::new(), now + LOOK_EVERY);
            members.wait_for(&mut wanted, &mut soon);
            sleep(&mut wanted, soon.saturating_sub(now));
        }
    }

    fn ended(&self, end: JobEnd, leader: &Leader, refused: Option<String>) -> GatherError {
        let absent = leader.absent();
        match end {
            JobEnd::Cancelled(cause) => GatherError::Cancelled(cause),
            JobEnd::Failed(fault) if fault.process == 0 && !absent.is_empty() => {
                GatherError::Absent {
                    names: self.names(&absent),
                    within: self.options.connect_timeout,
                    refused,
                }
            }
            JobEnd::Failed(fault) => GatherError::Failed(fault.message),
            JobEnd::Ended | JobEnd::Stopped => GatherError::Failed("the job is over".to_owned()),
        }
    }

    fn turned_away(&self, error: &ControlError) -> GatherError {
        let name = self.options.hosts.name(0);
        GatherError::Failed(match error {
            ControlError::Refused(reason) => format!("{name} refuses this process: {reason}"),
            ControlError::Mismatch(reason) => format!("{name} is not the right one: {reason}"),
            other => format!("{name}: {other}"),
        })
    }

    fn names(&self, processes: &[u32]) -> Vec<String> {
        let names = processes.iter();
        names
            .map(|process| self.options.hosts.name(*process as usize))
            .collect()
    }

    /// Where a process listens for data edges.
    fn address(&self, process: usize, data_port: u16) -> String {
        let host = &self.options.hosts.of(process).host;
        HostPort::new(host, data_port).to_string()
    }

    fn run(&self, job: u128, addresses: Vec<String>) -> RunIdentity {
        RunIdentity {
            job,
            attempt: self.options.attempt,
            process: self.options.process,
            addresses,
        }
    }

    fn cluster(self, role: Role, run: RunIdentity, edges: Box<dyn RemoteEdges>) -> Cluster {
        Cluster {
            clock: self.clock,
            process: self.options.process,
            hosts: self.options.hosts,
            role,
            run,
            edges,
            counters: self.options.counters,
            commands: VecDeque::new(),
            over_since: None,
        }
    }
}
