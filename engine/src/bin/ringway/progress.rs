//! The line that shows on a terminal how a job gets on.

use std::io::IsTerminal;
use std::time::Duration;

use arrow::temporal_conversions::timestamp_ms_to_datetime;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ringway::element::{EVENT_TIME_MAX, EventTime};
use ringway::job::file::Connected;
use ringway::task::TaskReport;

use crate::edges;
use crate::units::{grouped, rate, short};

/// A line on standard error, if that is a terminal.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    rows_before: u64,
    elapsed_before: Duration,
    blocked_before: Duration,
}

impl ProgressLine {
    /// A line for the job `name`; nothing is shown if `quiet`, or where no one would see it.
    pub(crate) fn new(name: &str, quiet: bool) -> Self {
        let target = match !quiet && std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_prefix(name.to_owned());
        Self {
            bar,
            rows_before: 0,
            elapsed_before: Duration::ZERO,
            blocked_before: Duration::ZERO,
        }
    }

    /// Whether anyone sees it.
    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows how far the job is after `elapsed`.
    pub(crate) fn show<'a>(
        &mut self,
        sources: &[Connected],
        tasks: impl Iterator<Item = &'a TaskReport> + Clone,
        elapsed: Duration,
    ) {
        let rows: u64 = sources.iter().map(|source| source.stats.read().rows).sum();
        // What sources of other processes have read is known from their tasks.
        let emitted: u64 = tasks.clone().map(|task| task.source_rows).sum();
        let rows = rows.max(emitted);
        let since = elapsed.saturating_sub(self.elapsed_before);
        let rows_per_s = rate(rows.saturating_sub(self.rows_before), since);
        let mut message = format!("{} rows, {}/s", grouped(rows), grouped(rows_per_s));
        if let Some(watermark) = watermark(tasks.clone()) {
            message.push_str(&format!(", {watermark}"));
        }
        if let Some(pressure) = self.back_pressure(tasks, since) {
            message.push_str(&format!(", {pressure}"));
        }
        self.rows_before = rows;
        self.elapsed_before = elapsed;
        self.bar.set_message(message);
        self.bar.tick();
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// The stream whose senders have waited longest for room, with the share of the time since
    /// the last line that all senders together have waited, in edges.
    fn back_pressure<'a>(
        &mut self,
        tasks: impl Iterator<Item = &'a TaskReport>,
        since: Duration,
    ) -> Option<String> {
        let streams = edges::by_stream(tasks);
        let blocked: Duration = streams.values().map(|stream| stream.blocked).sum();
        let waited = blocked.saturating_sub(self.blocked_before);
        self.blocked_before = blocked;
        let (name, _) = streams.iter().max_by_key(|(_, stream)| stream.blocked)?;
        let share = waited.as_secs_f64() / since.as_secs_f64();
        (share >= 0.01).then(|| format!("blocked {:.0}% on {name}", share * 100.0))
    }
}

/// How far event time is at the task that is furthest behind, and how far that is behind the
/// one furthest ahead.
fn watermark<'a>(tasks: impl Iterator<Item = &'a TaskReport>) -> Option<String> {
    let reached = tasks.filter_map(|task| task.watermark);
    let reached: Vec<EventTime> = reached.filter(|time| *time != EVENT_TIME_MAX).collect();
    let (behind, ahead) = (reached.iter().min()?, reached.iter().max()?);
    let at = timestamp_ms_to_datetime(*behind)?.format("%Y-%m-%d %H:%M:%S");
    let lag = u64::try_from(ahead.saturating_sub(*behind)).unwrap_or_default();
    Some(format!(
        "at {at}, lag {}",
        short(Duration::from_millis(lag))
    ))
}
