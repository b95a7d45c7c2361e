//! What `run` and `check` both take.

use std::path::PathBuf;

use arrow::datatypes::SchemaRef;
use clap::Args;
use ringway::control::PROCESSES_MAX;
use ringway::data_plane::TransportChoice;
use ringway::job::file::{Connected, LoadedJob, Overrides};
use ringway::job::{Hosts, Plan};
use ringway::partition::Parallelism;
use ringway::placement::{AllowedCpus, Cores, Placement};
use ringway::worker::{HostKind, IdlePolicy};

use crate::processes::{has_standard_streams, share_of};

/// A job and where it runs. What is not said here is taken from the job file.
#[derive(Args)]
pub(crate) struct JobArgs {
    /// The job file, TOML or JSON by its ending.
    pub(crate) job: PathBuf,

    /// Subtasks of everything that does not say itself in the job file, 1 to 128 [default: 1].
    #[arg(long, short, env = "RINGWAY_PARALLELISM", value_parser = parallelism)]
    pub(crate) parallelism: Option<Parallelism>,

    /// The cores to run on, a worker on each: `auto` for all that are allowed, a number of
    /// them, or CPUs such as `0,2-3` (a single one as `3-3`) [default: auto].
    #[arg(long, env = "RINGWAY_CORES", visible_alias = "cpus", value_parser = cores)]
    pub(crate) cores: Option<Cores>,

    /// What a worker does when there is nothing to do: `spin`, `park`, or `adaptive`, which
    /// spins for a moment and then parks [default: adaptive].
    #[arg(long, env = "RINGWAY_IDLE")]
    pub(crate) idle: Option<IdlePolicy>,

    /// What hosts the workers: `thread`, or `glommio`, an executor that shares the core with
    /// file I/O [default: thread].
    #[arg(long, env = "RINGWAY_HOST")]
    pub(crate) host: Option<HostKind>,

    /// What carries edges between processes: `auto` for shared memory where both are on one host
    /// and sockets elsewhere, `local` for none, `shared` or `socket` [default: auto].
    #[arg(long, env = "RINGWAY_TRANSPORT")]
    pub(crate) transport: Option<TransportChoice>,

    /// Run in so many processes of this host, 1 to 1024: this one and others that it starts and
    /// ends with itself.
    #[arg(long, env = "RINGWAY_PROCESSES", value_parser = processes)]
    pub(crate) processes: Option<usize>,

    /// Run in one process at each of these places: a file with one HOST:PORT a line, or a list
    /// with commas. The first is process 0, which leads. Every process is started with the same
    /// job, options and hosts, and its own `--process`.
    #[arg(long, env = "RINGWAY_HOSTS", conflicts_with = "processes", value_parser = Hosts::read)]
    pub(crate) hosts: Option<Hosts>,

    /// Print one JSON object as the last line of standard output.
    #[arg(long, env = "RINGWAY_JSON", value_parser = clap::builder::BoolishValueParser::new())]
    pub(crate) json: bool,
}

impl JobArgs {
    /// In how many processes the job runs.
    pub(crate) fn processes(&self) -> usize {
        let hosts = self.hosts.as_ref().map(Hosts::count);
        hosts.or(self.processes).unwrap_or(1)
    }

    /// How many processes share the memory of this host.
    fn processes_of_a_host(&self) -> usize {
        let hosts = self.hosts.as_ref().map(Hosts::most_on_one_host);
        hosts.or(self.processes).unwrap_or(1)
    }
}

/// A job that can be run.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// The CPUs of this process and of those that it starts.
    pub(crate) cpus: Vec<usize>,
    pub(crate) idle: IdlePolicy,
    pub(crate) host: HostKind,
    pub(crate) sources: Vec<Connected>,
    pub(crate) sinks: Vec<Connected>,
    /// The streams that have a name, with their columns.
    pub(crate) streams: Vec<(String, SchemaRef)>,
    /// Bytes that edges, readers and writers may hold together.
    pub(crate) memory_bytes: u64,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
    /// What the user should know before the job is changed.
    pub(crate) hints: Vec<String>,
}

/// Loads and plans the job.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn plan(args: &JobArgs) -> Result<Planned, String> {
    let overrides = Overrides {
        parallelism: args.parallelism,
        transport: args.transport,
    };
    let mut job = LoadedJob::load(&args.job, &overrides).map_err(|error| error.to_string())?;
    let cores = args.cores.clone().or(job.options.cores.clone());
    let allowed = AllowedCpus::of_process().map_err(|error| error.to_string())?;
    let placement = Placement::plan(allowed, &cores.unwrap_or_default());
    let placement = placement.map_err(|error| error.to_string())?;
    let cpus: Vec<usize> = placement.cpus().iter().map(|cpu| cpu.0).collect();
    // Processes that this one starts have their part of the CPUs.
    let started = args.processes.unwrap_or(1);
    let own = share_of(&cpus, 0, started).into_iter().map(Some).collect();
    job.options
        .memory_max
        .get_or_insert_with(|| crate::memory::default_memory_max(args.processes_of_a_host()));
    let plan = job
        .plan_for(own, args.processes())
        .map_err(|error| error.to_string())?;
    let warnings = job.warnings.iter().chain(&plan.warnings).cloned();
    let warnings = warnings.chain(placement.warning()).collect();
    let planned = Planned {
        idle: args.idle.or(job.options.idle).unwrap_or_default(),
        host: args.host.or(job.options.host).unwrap_or_default(),
        memory_bytes: plan.memory_bytes + beside_workers(&plan, &job),
        hints: plan.hints.clone(),
        plan,
        cpus,
        sources: job.sources,
        sinks: job.sinks,
        streams: job.streams,
        warnings,
    };
    if started > 1 {
        has_standard_streams(&planned)?;
    }
    Ok(planned)
}

/// Bytes that the connectors' readers and writers may hold.
fn beside_workers(plan: &Plan, job: &LoadedJob) -> u64 {
    let connected = job.sources.iter().chain(&job.sinks);
    let bytes = connected.map(|connected| {
        let chain = plan
            .chains
            .iter()
            .find(|chain| chain.names.contains(&connected.name));
        let subtasks = chain.map_or(1, |chain| chain.parallelism.subtasks());
        u64::from(subtasks) * connected.memory_bytes as u64
    });
    bytes.sum()
}

fn cores(text: &str) -> Result<Cores, String> {
    match text.parse()? {
        Cores::Count(0) => Err("a job runs on at least 1 core".to_owned()),
        cores => Ok(cores),
    }
}

fn processes(text: &str) -> Result<usize, String> {
    let processes = text.parse().ok();
    let processes = processes.filter(|processes| (1..=PROCESSES_MAX).contains(processes));
    processes.ok_or_else(|| format!("must be a whole number from 1 to {PROCESSES_MAX}"))
}

fn parallelism(text: &str) -> Result<Parallelism, String> {
    let subtasks: u32 = text
        .parse()
        .map_err(|_| "must be a whole number from 1 to 128")?;
    Parallelism::new(subtasks).map_err(|error| error.to_string())
}
