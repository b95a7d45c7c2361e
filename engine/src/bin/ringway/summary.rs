//! What a job did, for people and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ringway::clock::process_cpu_time;
use ringway::connect::spill::SpillReport;
use ringway::control::ProcessEnd;
use ringway::job::file::Connected;
use ringway::job::{JobOutcome, JobReport, ProcessReport};
use ringway::operator::RowCounts;
use ringway::task::{Latency, TaskReport};
use serde::Serialize;

use crate::args::Planned;
use crate::edges;
use crate::units::{bytes, counted, grouped, rate, short};

/// What a job did. `docs/OPERATIONS.md` says what each field is.
#[derive(Serialize)]
pub(crate) struct Summary<'a> {
    job: &'a str,
    outcome: &'static str,
    error: Option<String>,
    drained: bool,
    host: String,
    /// Why it is not the host that was asked for.
    host_cause: Option<&'a str>,
    workers: usize,
    /// The number of the process, where there are several.
    process: Option<usize>,
    processes: Vec<ProcessSummary<'a>>,
    elapsed_s: f64,
    first_row_s: Option<f64>,
    cpu_s: f64,
    rows_in: u64,
    rows_out: u64,
    rows_per_s: u64,
    discarded_rows: u64,
    latency: LatencySummary,
    sources: Vec<ConnectorSummary<'a>>,
    sinks: Vec<ConnectorSummary<'a>>,
    operators: Vec<OperatorSummary<'a>>,
    blocking: Vec<BlockingSummary<'a>>,
    restarts: u32,
    edges: Vec<EdgeSummary<'a>>,
    tasks: Vec<TaskSummary<'a>>,
    #[serde(skip)]
    report: &'a JobReport,
}

#[derive(Serialize)]
struct ProcessSummary<'a> {
    name: &'a str,
    outcome: &'static str,
    tasks: usize,
    rows_in: u64,
    rows_out: u64,
    cpu_s: f64,
    missing: Option<&'a str>,
}

#[derive(Serialize)]
struct LatencySummary {
    samples: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

#[derive(Serialize)]
struct ConnectorSummary<'a> {
    name: &'a str,
    connector: &'a str,
    rows: u64,
    batches: u64,
    bytes: u64,
    skipped_rows: u64,
    checksum: Option<String>,
}

#[derive(Serialize)]
struct OperatorSummary<'a> {
    name: &'a str,
    late_rows: u64,
    accepted_late_rows: u64,
    untimed_rows: u64,
    duplicate_rows: u64,
    spilled_bytes: u64,
}

#[derive(Serialize)]
struct BlockingSummary<'a> {
    name: &'a str,
    rows: u64,
    bytes: u64,
    reads: u32,
}

#[derive(Serialize)]
struct EdgeSummary<'a> {
    name: &'a str,
    transport: String,
    /// Why that is no shared memory, though it might have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_shared: Option<&'a str>,
    elements: u64,
    rows: u64,
    bytes: u64,
    high_water: usize,
    blocked_s: f64,
    blocked_times: u64,
}

#[derive(Serialize)]
struct TaskSummary<'a> {
    name: &'a str,
    rows_in: u64,
    rows_out: u64,
    discarded_rows: u64,
    watermark_ms: Option<i64>,
}

impl<'a> Summary<'a> {
    /// Of a job that began `set_up` after the process did.
    pub(crate) fn new(
        planned: &'a Planned,
        report: &'a JobReport,
        set_up: Duration,
        process: Option<usize>,
    ) -> Self {
        let total = |count: fn(&TaskReport) -> u64| report.tasks.iter().map(count).sum::<u64>();
        let rows_in = total(|task| task.source_rows);
        let first_row = report.first_row.map(|after| (set_up + after).as_secs_f64());
        Self {
            job: &planned.plan.name,
            outcome: outcome(&report.outcome),
            error: match &report.outcome {
                JobOutcome::Failed(error) => Some(error.to_string()),
                _ => None,
            },
            drained: report.drained,
            host: report.host.kind.to_string(),
            host_cause: report.host.cause.as_deref(),
            workers: planned.plan.workers.len(),
            process,
            processes: report.processes.iter().map(ProcessSummary::new).collect(),
            elapsed_s: report.elapsed.as_secs_f64(),
            first_row_s: first_row,
            cpu_s: cpu_time(report).as_secs_f64(),
            rows_in,
            rows_out: total(|task| task.sink_rows),
            rows_per_s: rate(rows_in, report.elapsed),
            discarded_rows: total(|task| task.discarded_rows),
            latency: LatencySummary::new(&latency(report)),
            sources: planned.sources.iter().map(ConnectorSummary::new).collect(),
            sinks: planned.sinks.iter().map(ConnectorSummary::new).collect(),
            operators: operators(&report.tasks),
            blocking: report.spills.iter().map(BlockingSummary::new).collect(),
            restarts: report.restarts,
            edges: edges(report),
            tasks: report.tasks.iter().map(TaskSummary::new).collect(),
            report,
        }
    }

    /// Workers, and which process it was or how many there were.
    fn ran_on(&self) -> String {
        let workers = counted(self.workers, "worker");
        match (self.process, self.processes.len()) {
            (Some(_), several) if several > 0 => {
                format!("{workers} of process 0, in {several} processes")
            }
            (Some(process), _) => format!("{workers} of process {process}"),
            (None, _) => workers,
        }
    }

    /// One JSON object on one line.
    pub(crate) fn json(&self) -> String {
        // Invariant: the fields are numbers, texts and lists of these, no maps with other keys.
        serde_json::to_string(self).expect("numbers and texts are JSON")
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drained = if self.drained { " (drained)" } else { "" };
        writeln!(
            f,
            "{} {}{drained} after {}, CPU {:.2} s on {}",
            self.job,
            self.outcome,
            short(self.report.elapsed),
            self.cpu_s,
            self.ran_on()
        )?;
        writeln!(
            f,
            "  in {} rows, {} rows/s; out {} rows; discarded {}",
            grouped(self.rows_in),
            grouped(self.rows_per_s),
            grouped(self.rows_out),
            grouped(self.discarded_rows)
        )?;
        if let Some(first_row_s) = self.first_row_s {
            let first_row = short(Duration::from_secs_f64(first_row_s));
            writeln!(
                f,
                "  first row out {first_row} after the start of the process"
            )?;
        }
        if let Some(cause) = self.host_cause {
            writeln!(f, "  workers ran on the host {}: {cause}", self.host)?;
        }
        let us = |us: f64| short(Duration::from_secs_f64(us / 1e6));
        let latency = &self.latency;
        if latency.samples > 0 {
            writeln!(
                f,
                "  latency, source to sink: p50 {}, p99 {}, p99.9 {}, max {}",
                us(latency.p50_us),
                us(latency.p99_us),
                us(latency.p999_us),
                us(latency.max_us)
            )?;
        }
        for process in &self.processes {
            writeln!(f, "  {process}")?;
        }
        for (kind, connectors) in [("source", &self.sources), ("sink", &self.sinks)] {
            for connector in connectors {
                writeln!(f, "  {kind} {connector}")?;
            }
        }
        for operator in &self.operators {
            let counts = operator.in_words();
            if !counts.is_empty() {
                writeln!(f, "  operator {}: {}", operator.name, counts.join(", "))?;
            }
        }
        for blocking in &self.blocking {
            writeln!(f, "  blocking {blocking}")?;
        }
        for (name, stream) in edges::by_stream(&self.report.tasks) {
            writeln!(
                f,
                "  edge {name}: {} rows, at most {} queued, blocked {}",
                grouped(stream.rows),
                stream.high_water,
                short(stream.blocked)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ConnectorSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rows", self.name, grouped(self.rows))?;
        if self.bytes > 0 {
            write!(f, ", {}", bytes(self.bytes))?;
        }
        if self.skipped_rows > 0 {
            write!(f, ", {} malformed rows skipped", grouped(self.skipped_rows))?;
        }
        match &self.checksum {
            Some(checksum) => write!(f, ", checksum {checksum}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for BlockingSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} rows, {} spilled, read {}",
            self.name,
            grouped(self.rows),
            bytes(self.bytes),
            counted(self.reads as usize, "time")
        )
    }
}

impl fmt::Display for ProcessSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}: {}, in {} rows, out {} rows, CPU {:.2} s",
            self.name,
            self.outcome,
            counted(self.tasks, "task"),
            grouped(self.rows_in),
            grouped(self.rows_out),
            self.cpu_s
        )?;
        match self.missing {
            Some(missing) => write!(f, "; not known in full, without {missing}"),
            None => Ok(()),
        }
    }
}

impl<'a> ProcessSummary<'a> {
    fn new(process: &'a ProcessReport) -> Self {
        let total = |count: fn(&TaskReport) -> u64| process.tasks.iter().map(count).sum::<u64>();
        Self {
            name: &process.name,
            outcome: match process.end {
                Some(ProcessEnd::Ended) => "ended",
                Some(ProcessEnd::Stopped) => "stopped",
                Some(ProcessEnd::Cancelled) => "cancelled",
                Some(ProcessEnd::Failed) => "failed",
                None => "lost",
            },
            tasks: process.tasks.len(),
            rows_in: total(|task| task.source_rows),
            rows_out: total(|task| task.sink_rows),
            cpu_s: process.cpu.as_secs_f64(),
            missing: process.missing.as_deref(),
        }
    }
}

impl LatencySummary {
    fn new(latency: &Latency) -> Self {
        let us = |duration: Duration| duration.as_nanos() as f64 / 1e3;
        Self {
            samples: latency.count(),
            p50_us: us(latency.quantile(0.5)),
            p99_us: us(latency.quantile(0.99)),
            p999_us: us(latency.quantile(0.999)),
            max_us: us(latency.max()),
        }
    }
}

impl<'a> ConnectorSummary<'a> {
    fn new(connected: &'a Connected) -> Self {
        let counters = connected.stats.read();
        Self {
            name: &connected.name,
            connector: &connected.connector,
            rows: counters.rows,
            batches: counters.batches,
            bytes: counters.bytes,
            skipped_rows: counters.skipped_rows,
            checksum: counters.checksum.map(|sum| format!("{sum:016x}")),
        }
    }
}

impl<'a> BlockingSummary<'a> {
    fn new(report: &'a SpillReport) -> Self {
        Self {
            name: &report.name,
            rows: report.rows,
            bytes: report.bytes,
            reads: report.reads,
        }
    }
}

impl<'a> TaskSummary<'a> {
    fn new(task: &'a TaskReport) -> Self {
        Self {
            name: &task.name,
            rows_in: task.rows_in,
            rows_out: task.rows_out,
            discarded_rows: task.discarded_rows,
            watermark_ms: task.watermark,
        }
    }
}

impl OperatorSummary<'_> {
    /// The counts that are not zero.
    fn in_words(&self) -> Vec<String> {
        let counts = [
            (self.late_rows, "rows late"),
            (self.accepted_late_rows, "late but in time to be taken in"),
            (self.untimed_rows, "without an event time"),
            (self.duplicate_rows, "left out as duplicates"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{} {what}", grouped(*count)));
        let spilled = Some(self.spilled_bytes).filter(|spilled| *spilled > 0);
        let spilled = spilled.map(|spilled| format!("{} spilled", bytes(spilled)));
        counts.chain(spilled).collect()
    }
}

/// Each operator that treats rows apart from others, in all its subtasks.
fn operators(tasks: &[TaskReport]) -> Vec<OperatorSummary<'_>> {
    let mut by_name: BTreeMap<&str, RowCounts> = BTreeMap::new();
    for operator in tasks.iter().flat_map(|task| &task.operators) {
        let counts = by_name.entry(&operator.name).or_default();
        counts.add(&operator.counts);
    }
    let summaries = by_name.into_iter().map(|(name, counts)| OperatorSummary {
        name,
        late_rows: counts.late_rows,
        accepted_late_rows: counts.accepted_late_rows,
        untimed_rows: counts.untimed_rows,
        duplicate_rows: counts.duplicate_rows,
        spilled_bytes: counts.spilled_bytes,
    });
    summaries.collect()
}

fn edges(report: &JobReport) -> Vec<EdgeSummary<'_>> {
    let edges = edges::all(&report.tasks).map(|edge| EdgeSummary {
        name: &edge.name,
        transport: edge.transport.to_string(),
        not_shared: edge.not_shared.as_deref(),
        elements: edge.metrics.elements,
        rows: edge.metrics.rows,
        bytes: edge.metrics.bytes,
        high_water: edge.metrics.high_water,
        blocked_s: edge.metrics.blocked.as_secs_f64(),
        blocked_times: edge.metrics.blocked_times,
    });
    edges.collect()
}

/// CPU time of all processes of the job, as far as this one is told.
fn cpu_time(report: &JobReport) -> Duration {
    let others = report.processes.iter().skip(1).map(|process| process.cpu);
    process_cpu_time() + others.sum::<Duration>()
}

fn latency(report: &JobReport) -> Latency {
    let mut all = Latency::default();
    for task in &report.tasks {
        all.merge(&task.latency);
    }
    all
}

const fn outcome(outcome: &JobOutcome) -> &'static str {
    match outcome {
        JobOutcome::Ended => "ended",
        JobOutcome::Stopped => "stopped",
        JobOutcome::Cancelled => "cancelled",
        JobOutcome::Failed(_) => "failed",
    }
}
