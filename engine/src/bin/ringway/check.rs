//! `ringway check`: how a job would run.

use std::fmt;

use arrow::datatypes::{FieldRef, SchemaRef};
use clap::Args;
use ringway::edge::Transport;
use ringway::job::Plan;
use ringway::job::file::Connected;
use ringway::job::plan::StagePlan;
use serde::Serialize;

use crate::EXIT_INVALID;
use crate::args::{JobArgs, Planned, plan};
use crate::output::{print, say};
use crate::units::{bytes, counted};

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringway check docs/examples/flights.toml
  ringway check job.toml --parallelism 4 --cores 2-5 --json
  ringway check job.toml --parallelism 4 --processes 2")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    job: JobArgs,
}

/// Prints the plan of the job. Returns the exit code.
pub(crate) fn check(args: &CheckArgs) -> u8 {
    match plan(&args.job) {
        Ok(planned) => {
            let view = PlanView::new(&planned);
            match args.job.json {
                true => print(format_args!("{}\n", view.json()), 0),
                false => print(&view, 0),
            }
        }
        Err(message) => {
            say(format_args!("error: {message}\n"));
            if args.job.json {
                let object = serde_json::json!({ "valid": false, "error": message });
                return print(format_args!("{object}\n"), EXIT_INVALID);
            }
            EXIT_INVALID
        }
    }
}

/// A plan as it is shown. `docs/OPERATIONS.md` says what each field is.
#[derive(Serialize)]
struct PlanView<'a> {
    valid: bool,
    job: &'a str,
    host: String,
    idle: String,
    /// The CPU of each worker.
    workers: &'a [Option<usize>],
    processes: usize,
    plan_hash: String,
    tasks: usize,
    memory_bytes: u64,
    sources: Vec<ConnectorView<'a>>,
    sinks: Vec<ConnectorView<'a>>,
    streams: Vec<StreamView<'a>>,
    chains: Vec<ChainView<'a>>,
    links: Vec<LinkView<'a>>,
    stages: Vec<Vec<usize>>,
    blocking: Vec<BlockingView<'a>>,
    warnings: Vec<&'a str>,
}

#[derive(Serialize)]
struct ConnectorView<'a> {
    name: &'a str,
    connector: &'a str,
    describes: &'a str,
}

#[derive(Serialize)]
struct StreamView<'a> {
    name: &'a str,
    columns: Vec<ColumnView<'a>>,
}

#[derive(Serialize)]
struct ColumnView<'a> {
    name: &'a str,
    r#type: String,
    nullable: bool,
}

#[derive(Serialize)]
struct ChainView<'a> {
    operators: &'a [String],
    uids: &'a [String],
    subtasks: u32,
    processes: &'a [usize],
    workers: &'a [usize],
}

/// What ends a stage. `docs/OPERATIONS.md` says what each field is.
#[derive(Serialize)]
struct BlockingView<'a> {
    name: &'a str,
    spill_dir: Option<String>,
    spill_max_bytes: u64,
    restarts: u32,
}

#[derive(Serialize)]
struct LinkView<'a> {
    from: String,
    to: &'a str,
    exchange: String,
    transport: String,
    edges: usize,
    edges_between: usize,
    capacity_elements: usize,
    bytes_max: usize,
}

impl<'a> PlanView<'a> {
    fn new(planned: &'a Planned) -> Self {
        let plan = &planned.plan;
        let warnings = planned.warnings.iter().chain(&planned.hints);
        Self {
            valid: true,
            job: &plan.name,
            host: planned.host.to_string(),
            idle: planned.idle.to_string(),
            workers: &plan.workers,
            processes: plan.processes,
            plan_hash: format!("{:016x}", plan.hash),
            tasks: plan.task_count(),
            memory_bytes: planned.memory_bytes,
            sources: connectors(&planned.sources),
            sinks: connectors(&planned.sinks),
            streams: streams(&planned.streams),
            chains: chains(plan),
            links: links(plan),
            stages: plan.stages.iter().map(stage).collect(),
            blocking: blocking(plan),
            warnings: warnings.map(String::as_str).collect(),
        }
    }

    fn json(&self) -> String {
        // Invariant: the fields are numbers, texts and lists of these, no maps with other keys.
        serde_json::to_string(self).expect("numbers and texts are JSON")
    }
}

impl PlanView<'_> {
    /// The stages, where there are several, and what is between them.
    fn fmt_stages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.blocking.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nstages, one after the other:")?;
        for (number, stage) in self.stages.iter().enumerate() {
            let chains = stage
                .iter()
                .map(|chain| self.chains[*chain].operators.join(" > "));
            let chains = chains.collect::<Vec<_>>().join("; ");
            writeln!(f, "  {}: {chains}", number + 1)?;
        }
        for edge in &self.blocking {
            let folder = edge.spill_dir.as_deref();
            writeln!(
                f,
                "  {} spills at most {} to {}; what reads it is run again {} at most",
                edge.name,
                bytes(edge.spill_max_bytes),
                folder.unwrap_or("the system's folder for temporary files"),
                counted(edge.restarts as usize, "time")
            )?;
        }
        Ok(())
    }
}

impl<'a> ColumnView<'a> {
    fn new(field: &'a FieldRef) -> Self {
        Self {
            name: field.name(),
            r#type: field.data_type().to_string(),
            nullable: field.is_nullable(),
        }
    }
}

fn connectors(connected: &[Connected]) -> Vec<ConnectorView<'_>> {
    let views = connected.iter().map(|connected| ConnectorView {
        name: &connected.name,
        connector: &connected.connector,
        describes: &connected.describes,
    });
    views.collect()
}

fn streams(streams: &[(String, SchemaRef)]) -> Vec<StreamView<'_>> {
    let views = streams.iter().map(|(name, schema)| StreamView {
        name,
        columns: schema.fields().iter().map(ColumnView::new).collect(),
    });
    views.collect()
}

fn chains(plan: &Plan) -> Vec<ChainView<'_>> {
    let chains = plan.chains.iter().map(|chain| ChainView {
        operators: &chain.names,
        uids: &chain.uids,
        subtasks: chain.parallelism.subtasks(),
        processes: &chain.processes,
        workers: &chain.workers,
    });
    chains.collect()
}

fn links(plan: &Plan) -> Vec<LinkView<'_>> {
    let links = plan.links.iter().map(|link| LinkView {
        from: plan.graph().output_name(link.node, link.port),
        to: &plan.chains[link.to].names[0],
        exchange: link.exchange.to_string(),
        transport: link.transport.map_or_else(
            || format!("{} or {}", Transport::Shared, Transport::Socket),
            |transport| transport.to_string(),
        ),
        edges: link.edges,
        edges_between: link.edges_between,
        capacity_elements: link.capacity_elements,
        bytes_max: link.bytes_max,
    });
    links.collect()
}

fn stage(stage: &StagePlan) -> Vec<usize> {
    let mut chains = stage.groups.concat();
    chains.sort_unstable();
    chains
}

fn blocking(plan: &Plan) -> Vec<BlockingView<'_>> {
    let edges = plan.graph().blocking().iter().map(|edge| {
        let options = edge.options();
        let spill_dir = options.spill_dir.as_ref();
        BlockingView {
            name: &plan.graph()[edge.to].name,
            spill_dir: spill_dir.map(|dir| dir.display().to_string()),
            spill_max_bytes: options.spill_max_bytes,
            restarts: options.restarts,
        }
    });
    edges.collect()
}

impl fmt::Display for ColumnView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_null = if self.nullable { "" } else { " not null" };
        write!(f, "{} {}{not_null}", self.name, self.r#type)
    }
}

/// Where the subtasks of a chain run: the process, where there are several, and the worker.
fn places(chain: &ChainView<'_>, processes: usize) -> String {
    let subtasks = chain.processes.iter().zip(chain.workers);
    let places = subtasks.map(|(process, worker)| match processes {
        1 => worker.to_string(),
        _ => format!("{process}/{worker}"),
    });
    let places = places.collect::<Vec<_>>().join(", ");
    match processes {
        1 => format!("worker {places}"),
        _ => format!("process/worker {places}"),
    }
}

/// What carries a link: some of its edges may stay in their process.
fn carried_by(link: &LinkView<'_>) -> String {
    match link.edges_between {
        0 => link.transport.clone(),
        between if between == link.edges => link.transport.clone(),
        between => format!("{between} by {}", link.transport),
    }
}

impl fmt::Display for PlanView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = self.workers.iter().map(|cpu| match cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "any CPU".to_owned(),
        });
        writeln!(
            f,
            "{}: {} on {} ({}), host {}, idle {}",
            self.job,
            counted(self.tasks, "task"),
            counted(self.workers.len(), "worker"),
            cpus.collect::<Vec<_>>().join(", "),
            self.host,
            self.idle
        )?;
        if self.processes > 1 {
            writeln!(
                f,
                "in {} processes, each with as many workers as its host gives; plan {}",
                self.processes, self.plan_hash
            )?;
        }
        writeln!(
            f,
            "edges, readers and writers hold at most {}",
            bytes(self.memory_bytes)
        )?;
        for (kind, connectors) in [("source", &self.sources), ("sink", &self.sinks)] {
            for connector in connectors {
                writeln!(f, "{kind} {}: {}", connector.name, connector.describes)?;
            }
        }
        writeln!(f, "\nstreams, with their columns:")?;
        for stream in &self.streams {
            let columns: Vec<_> = stream.columns.iter().map(ToString::to_string).collect();
            writeln!(f, "  {}: {}", stream.name, columns.join(", "))?;
        }
        writeln!(f, "\nchains, each a task a subtask:")?;
        for chain in &self.chains {
            writeln!(
                f,
                "  {}: {} on {}",
                chain.operators.join(" > "),
                counted(chain.subtasks as usize, "subtask"),
                places(chain, self.processes)
            )?;
        }
        writeln!(f, "\nedges between them:")?;
        for link in &self.links {
            writeln!(
                f,
                "  {} -> {}: {}, {}, {} of {} elements and {} each",
                link.from,
                link.to,
                link.exchange,
                carried_by(link),
                link.edges,
                link.capacity_elements,
                bytes(link.bytes_max as u64)
            )?;
        }
        self.fmt_stages(f)?;
        for warning in &self.warnings {
            writeln!(f, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}
