//! What a process reports to process 0, as bytes.
//!
//! It is JSON between two processes of one version of this program, which the greeting makes
//! sure of; so its form is no promise to anyone else. A report is never too long to be sent:
//! what does not fit is left out, the details first, and the report says so.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Monotonic;
use crate::connect::Counters;
use crate::control::MESSAGE_BYTES_MAX;
use crate::edge::{EdgeMetrics, Transport};
use crate::operator::RowCounts;
use crate::output::EdgeReport;
use crate::task::{Latency, OperatorReport, TaskReport};

/// Bytes of the last report of a process.
pub(super) const FINAL_BYTES_MAX: usize = 8 << 20;

/// Bytes of a report on the way: one comes ten times a second while somebody looks.
pub(super) const PROGRESS_BYTES_MAX: usize = 1 << 20;

/// The highest count in a report: more than any job comes to.
const COUNT_MAX: u64 = 1 << 50;

const _: () = assert!(PROGRESS_BYTES_MAX <= FINAL_BYTES_MAX);
const _: () = assert!(FINAL_BYTES_MAX < MESSAGE_BYTES_MAX as usize);

/// What a process reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) tasks: Vec<TaskReport>,
    /// What did not fit.
    pub(super) left_out: LeftOut,
    /// Of the connectors, in the order in which the process was given them.
    pub(super) counters: Vec<Counters>,
    /// CPU time of the process.
    pub(super) cpu: Duration,
}

/// What of a report was left out, each with what is before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum LeftOut {
    /// Nothing.
    #[default]
    Nothing,
    /// The latencies of single tasks: those of all are with the first one.
    Latencies,
    /// The edges.
    Edges,
    /// The operators, and the latencies of all tasks.
    Operators,
    /// The tasks, and all that connectors have counted.
    Everything,
}

impl LeftOut {
    const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Latencies,
        Self::Edges,
        Self::Operators,
        Self::Everything,
    ];

    /// What is missing, in words; nothing where all that counts is there.
    pub(super) const fn what(self) -> Option<&'static str> {
        match self {
            Self::Nothing | Self::Latencies => None,
            Self::Edges => Some("its edges"),
            Self::Operators => Some("its edges, operators and latencies"),
            Self::Everything => Some("all but its CPU time"),
        }
    }
}

impl Report {
    /// The report as at most `bytes_max` bytes.
    pub(super) fn encode(&self, bytes_max: usize) -> Vec<u8> {
        let mut encoded = Vec::new();
        for left_out in LeftOut::ALL {
            // Invariant: the fields are numbers, texts and lists of these, no maps with other
            // keys.
            encoded = serde_json::to_vec(&self.form(left_out)).expect("it is JSON");
            if encoded.len() <= bytes_max {
                break;
            }
        }
        encoded
    }

    /// A report on the way: as [`Report::encode`], without latencies, which only the end shows.
    pub(super) fn encode_progress(mut self) -> Vec<u8> {
        for task in &mut self.tasks {
            task.latency = Latency::default();
        }
        self.encode(PROGRESS_BYTES_MAX)
    }

    fn form(&self, left_out: LeftOut) -> ReportForm {
        let tasks = match left_out {
            LeftOut::Everything => &[],
            _ => &self.tasks[..],
        };
        let counters = match left_out {
            LeftOut::Everything => &[],
            _ => &self.counters[..],
        };
        let mut tasks: Vec<TaskForm> = tasks
            .iter()
            .map(|task| TaskForm::of(task, left_out))
            .collect();
        if (LeftOut::Latencies..LeftOut::Operators).contains(&left_out)
            && let Some(first) = tasks.first_mut()
        {
            let mut latency = Latency::default();
            self.tasks
                .iter()
                .for_each(|task| latency.merge(&task.latency));
            first.set_latency(&latency);
        }
        ReportForm {
            tasks,
            counters: counters.iter().map(CountersForm::of).collect(),
            cpu_ns: ns(self.cpu),
            left_out,
        }
    }

    /// The report in `bytes`, of a process that has `tasks_max` tasks.
    ///
    /// # Errors
    /// What is wrong with them. What is decoded of so many tasks is bounded by the length of the
    /// bytes and a histogram each.
    pub(super) fn decode(bytes: &[u8], tasks_max: usize) -> Result<Self, String> {
        let form: ReportForm = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if form.tasks.len() > tasks_max {
            let tasks = form.tasks.len();
            return Err(format!(
                "it is of {tasks} tasks, the process has {tasks_max}"
            ));
        }
        Ok(Self {
            tasks: form.tasks.into_iter().map(TaskForm::into_report).collect(),
            left_out: form.left_out,
            counters: form.counters.iter().map(CountersForm::counters).collect(),
            cpu: Duration::from_nanos(form.cpu_ns),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct ReportForm {
    tasks: Vec<TaskForm>,
    counters: Vec<CountersForm>,
    cpu_ns: u64,
    left_out: LeftOut,
}

#[derive(Serialize, Deserialize)]
struct TaskForm {
    name: String,
    uid: String,
    source_rows: u64,
    rows_in: u64,
    rows_out: u64,
    sink_rows: u64,
    discarded_rows: u64,
    elements_in: u64,
    first_row_ns: Option<u64>,
    checkpoints_lost: u64,
    watermark: Option<i64>,
    operators: Vec<OperatorForm>,
    edges: Vec<EdgeForm>,
    /// Latency in nanoseconds, and how many samples have it.
    latency: Vec<(u64, u64)>,
    latency_saturated: u64,
}

#[derive(Serialize, Deserialize)]
struct OperatorForm {
    name: String,
    late_rows: u64,
    accepted_late_rows: u64,
    untimed_rows: u64,
    duplicate_rows: u64,
    spilled_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct EdgeForm {
    name: String,
    transport: String,
    not_shared: Option<String>,
    elements: u64,
    rows: u64,
    bytes: u64,
    depth: usize,
    high_water: usize,
    blocked_ns: u64,
    blocked_times: u64,
}

#[derive(Serialize, Deserialize)]
struct CountersForm {
    rows: u64,
    batches: u64,
    bytes: u64,
    skipped_rows: u64,
    checksum: Option<u64>,
}

impl TaskForm {
    fn of(task: &TaskReport, left_out: LeftOut) -> Self {
        let edges = match left_out < LeftOut::Edges {
            true => &task.edges[..],
            false => &[],
        };
        let operators = match left_out < LeftOut::Operators {
            true => &task.operators[..],
            false => &[],
        };
        let mut form = Self {
            name: task.name.clone(),
            uid: task.uid.clone(),
            source_rows: task.source_rows,
            rows_in: task.rows_in,
            rows_out: task.rows_out,
            sink_rows: task.sink_rows,
            discarded_rows: task.discarded_rows,
            elements_in: task.elements_in,
            first_row_ns: task.first_row.map(|at| ns(at.0)),
            checkpoints_lost: task.checkpoints_lost,
            watermark: task.watermark,
            operators: operators.iter().map(OperatorForm::of).collect(),
            edges: edges.iter().map(EdgeForm::of).collect(),
            latency: Vec::new(),
            latency_saturated: 0,
        };
        if left_out < LeftOut::Latencies {
            form.set_latency(&task.latency);
        }
        form
    }

    fn set_latency(&mut self, latency: &Latency) {
        self.latency = latency.samples().collect();
        self.latency_saturated = latency.saturated();
    }

    fn into_report(self) -> TaskReport {
        TaskReport {
            name: self.name,
            uid: self.uid,
            source_rows: count(self.source_rows),
            rows_in: count(self.rows_in),
            rows_out: count(self.rows_out),
            sink_rows: count(self.sink_rows),
            discarded_rows: count(self.discarded_rows),
            elements_in: count(self.elements_in),
            first_row: self
                .first_row_ns
                .map(|at| Monotonic(Duration::from_nanos(at))),
            checkpoints_lost: count(self.checkpoints_lost),
            watermark: self.watermark,
            operators: self
                .operators
                .into_iter()
                .map(OperatorForm::into_report)
                .collect(),
            edges: self.edges.into_iter().map(EdgeForm::into_report).collect(),
            latency: Latency::of_samples(self.latency, count(self.latency_saturated)),
        }
    }
}

impl OperatorForm {
    fn of(operator: &OperatorReport) -> Self {
        let counts = operator.counts;
        Self {
            name: operator.name.clone(),
            late_rows: counts.late_rows,
            accepted_late_rows: counts.accepted_late_rows,
            untimed_rows: counts.untimed_rows,
            duplicate_rows: counts.duplicate_rows,
            spilled_bytes: counts.spilled_bytes,
        }
    }

    fn into_report(self) -> OperatorReport {
        OperatorReport {
            name: self.name,
            counts: RowCounts {
                late_rows: count(self.late_rows),
                accepted_late_rows: count(self.accepted_late_rows),
                untimed_rows: count(self.untimed_rows),
                duplicate_rows: count(self.duplicate_rows),
                spilled_bytes: count(self.spilled_bytes),
            },
        }
    }
}

impl EdgeForm {
    fn of(edge: &EdgeReport) -> Self {
        let metrics = edge.metrics;
        Self {
            name: edge.name.clone(),
            transport: edge.transport.to_string(),
            not_shared: edge.not_shared.clone(),
            elements: metrics.elements,
            rows: metrics.rows,
            bytes: metrics.bytes,
            depth: metrics.depth,
            high_water: metrics.high_water,
            blocked_ns: ns(metrics.blocked),
            blocked_times: metrics.blocked_times,
        }
    }

    fn into_report(self) -> EdgeReport {
        EdgeReport {
            name: self.name,
            transport: match &*self.transport {
                "socket" => Transport::Socket,
                "shared" => Transport::Shared,
                _ => Transport::Local,
            },
            not_shared: self.not_shared,
            metrics: EdgeMetrics {
                elements: count(self.elements),
                rows: count(self.rows),
                bytes: count(self.bytes),
                depth: self.depth,
                high_water: self.high_water,
                blocked: Duration::from_nanos(self.blocked_ns),
                blocked_times: count(self.blocked_times),
            },
        }
    }
}

impl CountersForm {
    fn of(counters: &Counters) -> Self {
        Self {
            rows: counters.rows,
            batches: counters.batches,
            bytes: counters.bytes,
            skipped_rows: counters.skipped_rows,
            checksum: counters.checksum,
        }
    }

    fn counters(&self) -> Counters {
        Counters {
            rows: count(self.rows),
            batches: count(self.batches),
            bytes: count(self.bytes),
            skipped_rows: count(self.skipped_rows),
            checksum: self.checksum,
        }
    }
}

/// A count that a peer has sent, such that sums of many do not overflow.
fn count(sent: u64) -> u64 {
    sent.min(COUNT_MAX)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_as_it_was_sent() {
        let mut task = TaskReport {
            name: "sum[1]".to_owned(),
            uid: "sum-2".to_owned(),
            rows_in: COUNT_MAX,
            first_row: Some(Monotonic(Duration::from_millis(5))),
            watermark: Some(i64::MIN),
            operators: vec![OperatorReport {
                name: "window".to_owned(),
                counts: RowCounts {
                    late_rows: 1,
                    accepted_late_rows: 2,
                    untimed_rows: 3,
                    duplicate_rows: 4,
                    spilled_bytes: 5,
                },
            }],
            edges: vec![EdgeReport {
                name: "a[0] -> b[1]".to_owned(),
                transport: Transport::Shared,
                not_shared: Some("why".to_owned()),
                metrics: EdgeMetrics {
                    rows: 7,
                    ..EdgeMetrics::default()
                },
            }],
            ..TaskReport::default()
        };
        for us in [1, 1, 50, 2_000_000] {
            task.latency.record(Duration::from_micros(us));
        }
        let mut report = Report {
            tasks: vec![task],
            counters: vec![Counters {
                rows: 3,
                checksum: Some(u64::MAX),
                ..Counters::default()
            }],
            cpu: Duration::from_millis(12),
            left_out: LeftOut::Nothing,
        };
        let mut came = Report::decode(&report.encode(FINAL_BYTES_MAX), 1).unwrap();
        let [sent, got] = [&mut report, &mut came].map(|report| {
            let latency = std::mem::take(&mut report.tasks[0].latency);
            let quantiles = [0.5, 0.75, 1.0].map(|quantile| latency.quantile(quantile));
            (latency.count(), latency.max(), quantiles)
        });
        assert_eq!(sent, got);
        // What is in the debug form is everything else.
        assert_eq!(format!("{came:?}"), format!("{report:?}"));
        assert!(Report::decode(b"{}", 1).is_err());
    }

    /// A report of `tasks` tasks, each with `edges` edges and many latencies.
    fn large(tasks: u32, edges: usize) -> Report {
        let edge = EdgeReport {
            name: "readings[127] -> averages[127]".to_owned(),
            not_shared: None,
            transport: Transport::Socket,
            metrics: EdgeMetrics::default(),
        };
        let task = |index: u32| {
            let mut task = TaskReport {
                name: format!("averages[{index}]"),
                sink_rows: 1,
                edges: vec![edge.clone(); edges],
                operators: vec![OperatorReport {
                    name: "averages".to_owned(),
                    counts: RowCounts::default(),
                }],
                ..TaskReport::default()
            };
            for sample in 1..2000 {
                let us = u64::from(sample * (index + 1));
                task.latency.record(Duration::from_micros(us));
            }
            task
        };
        Report {
            tasks: (0..tasks).map(task).collect(),
            counters: vec![Counters {
                rows: 7,
                ..Counters::default()
            }],
            ..Report::default()
        }
    }

    #[test]
    fn a_report_that_is_too_long_leaves_out_its_details_and_says_so() {
        let report = large(40, 20);
        let whole = report.encode(usize::MAX).len();
        let mut left_out = Vec::new();
        for bytes_max in [whole, whole - 1, whole / 10, whole / 60, whole / 4000] {
            let encoded = report.encode(bytes_max);
            assert!(
                encoded.len() <= bytes_max,
                "{} of {bytes_max}",
                encoded.len()
            );
            let came = Report::decode(&encoded, 40).unwrap();
            left_out.push(came.left_out);
            let samples: u64 = came.tasks.iter().map(|task| task.latency.count()).sum();
            if came.left_out < LeftOut::Operators {
                assert_eq!(samples, 40 * 1999, "{:?}", came.left_out);
            }
            if came.left_out < LeftOut::Everything {
                assert_eq!(came.tasks.len(), 40);
                assert_eq!(came.counters[0].rows, 7);
            }
        }
        assert_eq!(left_out, LeftOut::ALL);
    }

    #[test]
    fn a_report_on_the_way_is_short() {
        let encoded = large(128, 128).encode_progress();
        assert!(encoded.len() <= PROGRESS_BYTES_MAX, "{}", encoded.len());
        let came = Report::decode(&encoded, 128).unwrap();
        assert!(came.tasks.iter().all(|task| task.latency.count() == 0));
        assert_eq!(came.tasks.len(), 128, "how far each task is counts");
    }

    #[test]
    fn a_peer_cannot_report_of_tasks_that_it_does_not_have_or_of_counts_beyond_all() {
        let mut report = large(2, 1);
        assert!(Report::decode(&report.encode(FINAL_BYTES_MAX), 1).is_err());
        report.tasks[0].sink_rows = u64::MAX;
        let came = Report::decode(&report.encode(FINAL_BYTES_MAX), 2).unwrap();
        let rows = came.tasks.iter().map(|task| task.sink_rows);
        assert_eq!(rows.sum::<u64>(), COUNT_MAX + 1);
    }
}
