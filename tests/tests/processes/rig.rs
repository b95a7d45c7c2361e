//! Processes that are threads.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringway::control::CancelCause;
use ringway::data_plane::TransportChoice;
use ringway::job::remote::RemoteEdges;
use ringway::job::{
    Cluster, ClusterOptions, GatherError, Hosts, Job, JobHandle, JobReport, Plan, PlanOptions,
    RunOptions, SocketEdges, start_in,
};
use ringway::partition::Parallelism;
use ringway_netio::driver::DriverChoice;

use crate::hub::Hub;

/// What a process does while its job runs.
pub(crate) type Meanwhile = dyn Fn(usize, &mut JobHandle) + Send + Sync;

/// A job in several processes.
pub(crate) struct Rig {
    pub(crate) processes: usize,
    pub(crate) parallelism: u32,
    pub(crate) connect_timeout: Duration,
    pub(crate) lost_after: Duration,
    pub(crate) meanwhile: Arc<Meanwhile>,
    pub(crate) afterwards: Arc<dyn Fn(usize) + Send + Sync>,
    pub(crate) hub: Hub,
    /// What carries the edges between processes, if it is not rings.
    transport: Option<TransportChoice>,
}

/// How the part of a job in one process ended.
pub(crate) type Ended = Result<JobReport, GatherError>;

impl Rig {
    pub(crate) fn new(processes: usize, parallelism: u32) -> Self {
        Self {
            processes,
            parallelism,
            connect_timeout: Duration::from_secs(20),
            lost_after: Duration::from_secs(5),
            meanwhile: Arc::new(|_, _| {}),
            afterwards: Arc::new(|_| {}),
            hub: Hub::default(),
            transport: None,
        }
    }

    /// Has edges between processes as between real ones, carried so, and with room for one element.
    pub(crate) fn over(mut self, transport: TransportChoice) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Does this while the job runs.
    pub(crate) fn meanwhile(
        mut self,
        meanwhile: impl Fn(usize, &mut JobHandle) + Send + Sync + 'static,
    ) -> Self {
        self.meanwhile = Arc::new(meanwhile);
        self
    }

    /// Does this when the job is over in a process.
    pub(crate) fn afterwards(mut self, afterwards: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.afterwards = Arc::new(afterwards);
        self
    }

    /// Runs the job that `say` says in each process, and tells how it ended in each.
    pub(crate) fn run(&self, say: impl Fn(usize, &Job) + Send + Sync + 'static) -> Vec<Ended> {
        let ended = self.run_to_the_end(say).into_iter();
        ended
            .map(|ended| ended.expect("no thread panics"))
            .collect()
    }

    /// As [`Rig::run`]; nothing for a process that panicked.
    pub(crate) fn run_to_the_end(
        &self,
        say: impl Fn(usize, &Job) + Send + Sync + 'static,
    ) -> Vec<Option<Ended>> {
        let all: Vec<usize> = (0..self.processes).collect();
        self.run_some(&all, say)
    }

    /// As [`Rig::run_to_the_end`], with only these processes there.
    pub(crate) fn run_some(
        &self,
        there: &[usize],
        say: impl Fn(usize, &Job) + Send + Sync + 'static,
    ) -> Vec<Option<Ended>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let hosts = (0..self.processes).map(|process| match process {
            0 => format!("127.0.0.1:{port}"),
            _ => "127.0.0.1:0".to_owned(),
        });
        let hosts: Hosts = hosts.collect::<Vec<_>>().join(",").parse().unwrap();
        let say = Arc::new(say);
        let mut listener = Some(listener).filter(|_| there.contains(&0));
        let threads: Vec<JoinHandle<Ended>> = there
            .iter()
            .map(|&process| {
                let say = say.clone();
                let listener = listener.take_if(|_| process == 0);
                let part = Part {
                    options: ClusterOptions {
                        listener,
                        connect_timeout: self.connect_timeout,
                        ..ClusterOptions::new(hosts.clone(), process)
                    },
                    plan: PlanOptions {
                        workers: vec![None; 1 + process % 2],
                        processes: self.processes,
                        parallelism: Parallelism::new(self.parallelism).unwrap(),
                        ..self.plan()
                    },
                    lost_after: self.lost_after,
                    meanwhile: self.meanwhile.clone(),
                    afterwards: self.afterwards.clone(),
                    hub: self.hub.clone(),
                    is_connected: self.transport.is_some(),
                };
                std::thread::spawn(move || part.run(|job| say(process, job)))
            })
            .collect();
        threads.into_iter().map(|t| t.join().ok()).collect()
    }

    fn plan(&self) -> PlanOptions {
        let default = PlanOptions::default();
        match self.transport {
            Some(transport) => PlanOptions {
                transport,
                capacity_elements: 1,
                ..default
            },
            None => default,
        }
    }
}

struct Part {
    options: ClusterOptions,
    plan: PlanOptions,
    lost_after: Duration,
    meanwhile: Arc<Meanwhile>,
    afterwards: Arc<dyn Fn(usize) + Send + Sync>,
    hub: Hub,
    is_connected: bool,
}

impl Part {
    fn run(mut self, say: impl FnOnce(&Job)) -> Ended {
        self.options.control.lost_after = self.lost_after;
        self.options.control.heartbeat = self.lost_after / 5;
        let process = self.options.process;
        let job = Job::new("spread");
        say(&job);
        let plan = Plan::new(job.into_graph(), &self.plan).unwrap();
        let edges: Box<dyn RemoteEdges> = match self.is_connected {
            true => {
                Box::new(SocketEdges::listen(&plan, &self.options, DriverChoice::Epoll).unwrap())
            }
            false => Box::new(self.hub),
        };
        let cluster = Cluster::gather(&plan, self.options, edges, &mut || None::<CancelCause>)?;
        let mut handle = start_in(&plan, &RunOptions::default(), cluster).unwrap();
        (self.meanwhile)(process, &mut handle);
        let report = handle.wait();
        (self.afterwards)(process);
        Ok(report)
    }
}
