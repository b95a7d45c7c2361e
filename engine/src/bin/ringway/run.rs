//! `ringway run`: runs a job and says what it did.

use std::time::Duration;

use clap::Args;
use ringway::clock::Clock;
use ringway::connect::spill::SpillFolder;
use ringway::control::CancelCause;
use ringway::job::file::Span;
use ringway::job::{
    GatherError, JobError, JobHandle, JobOutcome, JobReport, RunOptions, start, start_in,
};

use crate::args::{JobArgs, Planned, plan};
use crate::output::{print, say};
use crate::processes::{Meeting, Others, Place, ProcessArgs};
use crate::progress::ProgressLine;
use crate::signals::{Signals, StopSignal};
use crate::summary::Summary;
use crate::{EXIT_FAILED, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_TERMINATED};

/// How often the command looks for signals, and the progress line changes.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringway run docs/examples/flights.toml
  ringway run job.toml --parallelism 4 --cores 2-5
  ringway run job.toml --drain-after 10s --json --quiet

Over several processes:
  ringway run job.toml --parallelism 4 --processes 2      two processes of this host
  ringway run job.toml -p 4 --hosts hosts.txt --process 0 on the first host of hosts.txt
  ringway run job.toml -p 4 --hosts a:7000,b:7000 --process 1    on b; process 0 runs on a")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    job: JobArgs,

    #[command(flatten)]
    process: ProcessArgs,

    /// Neither a progress line nor the summary; warnings and errors only.
    #[arg(long, short, env = "RINGWAY_QUIET", value_parser = clap::builder::BoolishValueParser::new())]
    quiet: bool,

    /// The first Ctrl-C or SIGTERM ends the sources, so that what they have read is processed
    /// and written; the second cancels. Without it the first one cancels.
    #[arg(long, env = "RINGWAY_DRAIN", value_parser = clap::builder::BoolishValueParser::new())]
    drain: bool,

    /// End the sources after this time, such as `10s`.
    #[arg(long, value_name = "TIME", env = "RINGWAY_DRAIN_AFTER")]
    drain_after: Option<Span>,
}

/// Runs the job. Returns the exit code.
pub(crate) fn run(args: &RunArgs, clock: Clock) -> u8 {
    let placed = Place::of(&args.job, &args.process);
    let (place, planned) = match placed.and_then(|place| Ok((place, plan(&args.job)?))) {
        Ok(both) => both,
        Err(message) => return refuse(args, &message),
    };
    for warning in &planned.warnings {
        tracing::warn!("{warning}");
    }
    for hint in &planned.hints {
        tracing::debug!("{hint}");
    }
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return refuse(args, &format!("signals cannot be caught: {error}")),
    };
    let mut others = Others::default();
    let options = RunOptions {
        idle: planned.idle,
        host: planned.host,
    };
    let set_up = clock.now().0;
    let job = match begin(args, &planned, &place, &options, &mut others, &mut signals) {
        Ok(job) => job,
        Err(NotBegun::Invalid(message)) => return refuse(args, &message),
        Err(NotBegun::Cancelled(cause)) => return cancelled(args, cause),
    };
    let mut watch = Watch {
        args,
        planned: &planned,
        job,
        signals,
        stop: None,
        drained: false,
    };
    let report = watch.until_over();
    let stop = watch.stop;
    others.leave();
    // A sort that was cancelled may be at it still, and nobody waits for it.
    SpillFolder::remove_all();
    let code = exit_code(&report, stop);
    let summary = Summary::new(&planned, &report, set_up, place.process());
    if let JobOutcome::Failed(error) = &report.outcome {
        say(format_args!("error: {error}\n"));
    }
    if !args.quiet {
        say(&summary);
    }
    match args.job.json {
        true => print(format_args!("{}\n", summary.json()), code),
        false => code,
    }
}

/// Why a job was not begun.
enum NotBegun {
    Invalid(String),
    Cancelled(CancelCause),
}

/// Starts the job, or the part of it that runs in this process once all others are there.
fn begin(
    args: &RunArgs,
    planned: &Planned,
    place: &Place,
    options: &RunOptions,
    others: &mut Others,
    signals: &mut Signals,
) -> Result<JobHandle, NotBegun> {
    let meeting = Meeting {
        job: &args.job,
        process: &args.process,
        planned,
        place,
    };
    let gathered = meeting.gather(others, &mut || signals.next().map(cause_of));
    let cluster = gathered.map_err(|error| match error {
        GatherError::Cancelled(cause) => NotBegun::Cancelled(cause),
        error => NotBegun::Invalid(error.to_string()),
    })?;
    let invalid = |error: JobError| NotBegun::Invalid(error.to_string());
    match cluster {
        None => start(&planned.plan, options).map_err(invalid),
        Some(cluster) => start_in(&planned.plan, options, cluster).map_err(invalid),
    }
}

/// A job while it runs.
struct Watch<'a> {
    args: &'a RunArgs,
    planned: &'a Planned,
    job: JobHandle,
    signals: Signals,
    /// The signal that cancelled the job.
    stop: Option<StopSignal>,
    drained: bool,
}

impl Watch<'_> {
    fn until_over(&mut self) -> JobReport {
        let mut line = ProgressLine::new(&self.planned.plan.name, self.args.quiet);
        loop {
            if line.is_shown() {
                self.job.request_progress();
            }
            if let Some(report) = self.job.wait_timeout(LOOK_EVERY) {
                line.clear();
                return report;
            }
            let elapsed = self.job.elapsed();
            while let Some(signal) = self.signals.next() {
                self.stop_by(signal);
            }
            let drain_after = self.args.drain_after.map(Duration::from);
            if drain_after.is_some_and(|after| elapsed >= after) {
                self.drain();
            }
            if line.is_shown() {
                let tasks: Vec<_> = self.job.progress().collect();
                line.show(&self.planned.sources, tasks.iter().copied(), elapsed);
            }
        }
    }

    fn stop_by(&mut self, signal: StopSignal) {
        if self.args.drain && !self.drained {
            self.drain();
        } else if self.stop.is_none() {
            self.stop = Some(signal);
            self.job.cancel_by(cause_of(signal));
        } else {
            // Cancelled already, and an operator does not return: whoever asks again means it.
            SpillFolder::remove_all();
            std::process::exit(i32::from(code_of(signal)));
        }
    }

    fn drain(&mut self) {
        if !self.drained {
            self.drained = true;
            self.job.drain();
        }
    }
}

fn exit_code(report: &JobReport, stop: Option<StopSignal>) -> u8 {
    match (&report.outcome, stop) {
        (JobOutcome::Ended | JobOutcome::Stopped, _) => 0,
        (JobOutcome::Failed(_), _) => EXIT_FAILED,
        (JobOutcome::Cancelled, Some(signal)) => code_of(signal),
        (JobOutcome::Cancelled, None) => report.cancelled_by.map_or(EXIT_FAILED, code_of_cause),
    }
}

const fn cause_of(signal: StopSignal) -> CancelCause {
    match signal {
        StopSignal::Interrupt => CancelCause::Interrupt,
        StopSignal::Terminate => CancelCause::Terminate,
    }
}

/// A signal that came to another process counts as if it had come to this one.
const fn code_of_cause(cause: CancelCause) -> u8 {
    match cause {
        CancelCause::Interrupt => EXIT_INTERRUPTED,
        CancelCause::Terminate => EXIT_TERMINATED,
        CancelCause::Asked | CancelCause::Failure => EXIT_FAILED,
    }
}

const fn code_of(signal: StopSignal) -> u8 {
    match signal {
        StopSignal::Interrupt => EXIT_INTERRUPTED,
        StopSignal::Terminate => EXIT_TERMINATED,
    }
}

/// The job cannot be run, and nothing has.
fn refuse(args: &RunArgs, message: &str) -> u8 {
    say(format_args!("error: {message}\n"));
    if args.job.json {
        let object = serde_json::json!({ "outcome": "invalid", "error": message });
        return print(format_args!("{object}\n"), EXIT_INVALID);
    }
    EXIT_INVALID
}

/// The job was cancelled before it had begun anywhere.
fn cancelled(args: &RunArgs, cause: CancelCause) -> u8 {
    let code = code_of_cause(cause);
    let message = "the job was cancelled before all processes were there";
    say(format_args!("{message}\n"));
    if args.job.json {
        let object = serde_json::json!({ "outcome": "cancelled", "error": message });
        return print(format_args!("{object}\n"), code);
    }
    code
}
