//! What a process reports to process 0, as bytes.
//!
//! It is JSON between two processes of one version of this program, which the greeting makes
//! sure of; so its form is no promise to anyone else.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Monotonic;
use crate::connect::Counters;
use crate::edge::{EdgeMetrics, Transport};
use crate::operator::RowCounts;
use crate::output::EdgeReport;
use crate::task::{Latency, OperatorReport, TaskReport};

/// What a process reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) tasks: Vec<TaskReport>,
    /// Of the connectors, in the order in which the process was given them.
    pub(super) counters: Vec<Counters>,
    /// CPU time of the process.
    pub(super) cpu: Duration,
}

impl Report {
    /// The report as bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let form = ReportForm {
            tasks: self.tasks.iter().map(TaskForm::of).collect(),
            counters: self.counters.iter().map(CountersForm::of).collect(),
            cpu_ns: ns(self.cpu),
        };
        // Invariant: the fields are numbers, texts and lists of these, no maps with other keys.
        serde_json::to_vec(&form).expect("numbers and texts are JSON")
    }

    /// The report in `bytes`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let form: ReportForm = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        Ok(Self {
            tasks: form.tasks.into_iter().map(TaskForm::into_report).collect(),
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
    fn of(task: &TaskReport) -> Self {
        Self {
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
            operators: task.operators.iter().map(OperatorForm::of).collect(),
            edges: task.edges.iter().map(EdgeForm::of).collect(),
            latency: task.latency.samples().collect(),
            latency_saturated: task.latency.saturated(),
        }
    }

    fn into_report(self) -> TaskReport {
        TaskReport {
            name: self.name,
            uid: self.uid,
            source_rows: self.source_rows,
            rows_in: self.rows_in,
            rows_out: self.rows_out,
            sink_rows: self.sink_rows,
            discarded_rows: self.discarded_rows,
            elements_in: self.elements_in,
            first_row: self
                .first_row_ns
                .map(|at| Monotonic(Duration::from_nanos(at))),
            checkpoints_lost: self.checkpoints_lost,
            watermark: self.watermark,
            operators: self
                .operators
                .into_iter()
                .map(OperatorForm::into_report)
                .collect(),
            edges: self.edges.into_iter().map(EdgeForm::into_report).collect(),
            latency: Latency::of_samples(self.latency, self.latency_saturated),
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
                late_rows: self.late_rows,
                accepted_late_rows: self.accepted_late_rows,
                untimed_rows: self.untimed_rows,
                duplicate_rows: self.duplicate_rows,
                spilled_bytes: self.spilled_bytes,
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
                elements: self.elements,
                rows: self.rows,
                bytes: self.bytes,
                depth: self.depth,
                high_water: self.high_water,
                blocked: Duration::from_nanos(self.blocked_ns),
                blocked_times: self.blocked_times,
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
            rows: self.rows,
            batches: self.batches,
            bytes: self.bytes,
            skipped_rows: self.skipped_rows,
            checksum: self.checksum,
        }
    }
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
            rows_in: u64::MAX,
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
        let report = Report {
            tasks: vec![task],
            counters: vec![Counters {
                rows: 3,
                checksum: Some(u64::MAX),
                ..Counters::default()
            }],
            cpu: Duration::from_millis(12),
        };
        let mut report = report;
        let mut came = Report::decode(&report.encode()).unwrap();
        let [sent, got] = [&mut report, &mut came].map(|report| {
            let latency = std::mem::take(&mut report.tasks[0].latency);
            let quantiles = [0.5, 0.75, 1.0].map(|quantile| latency.quantile(quantile));
            (latency.count(), latency.max(), quantiles)
        });
        assert_eq!(sent, got);
        // What is in the debug form is everything else.
        assert_eq!(format!("{came:?}"), format!("{report:?}"));
        assert!(Report::decode(b"{}").is_err());
    }
}
