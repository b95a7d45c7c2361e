//! A job in several processes: how this one finds the others, or starts them.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Args;
use ringway::control::{CancelCause, ControlOptions};
use ringway::job::file::{Span, UnitError};
use ringway::job::{Cluster, ClusterOptions, GatherError, Hosts, SocketEdges};
use ringway_netio::driver::{DRIVER_VARIABLE, DriverChoice};
use ringway_netio::net::{DATA_BIND_HOST_VARIABLE, HostPort};

use crate::args::{JobArgs, Planned};
use crate::output::say;

/// Where processes that this one starts are reached.
const LOOPBACK: &str = "127.0.0.1";

/// Time that the processes which this one started have to end after the job has.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(10);

/// How often is looked whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What only a job in several processes needs.
#[derive(Args)]
pub(crate) struct ProcessArgs {
    /// Which of `--hosts` this process is, from 0.
    #[arg(long, value_name = "I", env = "RINGWAY_PROCESS", requires = "hosts")]
    pub(crate) process: Option<usize>,

    /// Time to wait for the other processes [default: 30s].
    #[arg(long, value_name = "TIME", env = "RINGWAY_CONNECT_TIMEOUT", value_parser = some_time)]
    connect_timeout: Option<Span>,

    /// Time after which a process that says nothing counts as lost, 100ms at least
    /// [default: 5s].
    #[arg(long, value_name = "TIME", env = "RINGWAY_LOST_AFTER", value_parser = lost_after)]
    lost_after: Option<Span>,

    /// What moves bytes between processes: `uring`, `epoll`, or `auto` for io_uring where it can
    /// be used [default: auto].
    #[arg(long, env = DRIVER_VARIABLE)]
    driver: Option<DriverChoice>,
}

/// How this process takes part in the job.
pub(crate) enum Place {
    /// It is the only one.
    Alone,
    /// It is one of several that somebody starts.
    One { hosts: Hosts, process: usize },
    /// It is the first of several, and starts the others.
    First { processes: usize },
}

/// The processes that this one has started. They end with it.
#[derive(Default)]
pub(crate) struct Others {
    children: Vec<Child>,
    printers: Vec<JoinHandle<()>>,
}

impl Place {
    /// What the command line says.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn of(job: &JobArgs, process: &ProcessArgs) -> Result<Self, String> {
        match (&job.hosts, process.process) {
            (None, _) => Ok(match job.processes() {
                1 => Self::Alone,
                processes => Self::First { processes },
            }),
            (Some(hosts), Some(process)) if process < hosts.count() => Ok(Self::One {
                hosts: hosts.clone(),
                process,
            }),
            (Some(hosts), Some(process)) => Err(format!(
                "there is no process {process} among {} hosts: they are numbered from 0",
                hosts.count()
            )),
            (Some(hosts), None) => Err(format!(
                "which of the {} hosts is this? Say it with `--process`, from 0",
                hosts.count()
            )),
        }
    }

    /// The number of this process, where there are several.
    pub(crate) fn process(&self) -> Option<usize> {
        match self {
            Self::Alone => None,
            Self::One { process, .. } => Some(*process),
            Self::First { .. } => Some(0),
        }
    }
}

/// What is needed to find the other processes.
pub(crate) struct Meeting<'a> {
    pub(crate) job: &'a JobArgs,
    pub(crate) process: &'a ProcessArgs,
    pub(crate) planned: &'a Planned,
    pub(crate) place: &'a Place,
}

impl Meeting<'_> {
    /// Waits until all processes are there, after it has started those that it is to start.
    /// `is_cancelled` is asked now and then whether to give up.
    ///
    /// # Errors
    /// Why nothing can run.
    pub(crate) fn gather(
        &self,
        others: &mut Others,
        is_cancelled: &mut dyn FnMut() -> Option<CancelCause>,
    ) -> Result<Option<Cluster>, GatherError> {
        let options = match self.place {
            Place::Alone => return Ok(None),
            Place::One { hosts, process } => {
                let bind_host = std::env::var(DATA_BIND_HOST_VARIABLE).ok();
                ClusterOptions {
                    bind_host: bind_host.filter(|host| !host.is_empty()),
                    ..ClusterOptions::new(hosts.clone(), *process)
                }
            }
            Place::First { processes } => self.start_others(*processes, others)?,
        };
        let options = self.with_times(options);
        let driver = self.process.driver.unwrap_or_default();
        let edges = SocketEdges::listen(&self.planned.plan, &options, driver);
        let edges = Box::new(edges.map_err(GatherError::Failed)?);
        let mut ended = None;
        let gathered = Cluster::gather(&self.planned.plan, options, edges, &mut || {
            ended = ended.take().or_else(|| others.first_ended());
            match &ended {
                Some(_) => Some(CancelCause::Failure),
                None => is_cancelled(),
            }
        });
        match (gathered, ended) {
            (Err(GatherError::Cancelled(CancelCause::Failure)), Some((process, status))) => {
                Err(GatherError::Failed(format!(
                    "process {process} has ended before the job began ({status})"
                )))
            }
            (gathered, _) => gathered.map(Some),
        }
    }

    fn with_times(&self, options: ClusterOptions) -> ClusterOptions {
        let connectors = self.planned.sources.iter().chain(&self.planned.sinks);
        let mut control = ControlOptions::default();
        if let Some(lost_after) = self.process.lost_after {
            control = control.lost_after(lost_after.into());
        }
        let connect_timeout = self.process.connect_timeout.map(Duration::from);
        ClusterOptions {
            control,
            connect_timeout: connect_timeout.unwrap_or(options.connect_timeout),
            counters: connectors
                .map(|connected| connected.stats.clone())
                .collect(),
            ..options
        }
    }

    /// Starts the processes from 1 on.
    fn start_others(
        &self,
        processes: usize,
        others: &mut Others,
    ) -> Result<ClusterOptions, GatherError> {
        let failed = |what: String| GatherError::Failed(what);
        let listener = TcpListener::bind((LOOPBACK, 0))
            .map_err(|error| failed(format!("no port can be had: {error}")))?;
        let address = listener
            .local_addr()
            .map_err(|error| failed(format!("no port can be had: {error}")))?;
        let any_port = HostPort::new(LOOPBACK, 0);
        let mut hosts = vec![any_port; processes];
        hosts[0] = address.into();
        let list: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        for process in 1..processes {
            let mut command = self.command_of(process, &list.join(","));
            others
                .start(process, &mut command)
                .map_err(|error| failed(format!("process {process} cannot be started: {error}")))?;
        }
        let hosts = Hosts::new(hosts).map_err(failed)?;
        Ok(ClusterOptions {
            listener: Some(listener),
            ..ClusterOptions::new(hosts, 0)
        })
    }

    /// The command of a process that this one starts: the same job, with the same options.
    fn command_of(&self, process: usize, hosts: &str) -> Command {
        // Invariant: a process that runs has a program, and Linux says where.
        let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let mut command = Command::new(program);
        for variable in [
            "PROCESSES",
            "PROCESS",
            "HOSTS",
            "JSON",
            "TRANSPORT",
            "DRAIN_AFTER",
            "CORES",
        ] {
            command.env_remove(format!("RINGWAY_{variable}"));
        }
        command.env_remove(DATA_BIND_HOST_VARIABLE);
        command.arg("run").arg(&self.job.job).arg("--quiet");
        command.args(["--hosts", hosts, "--process", &process.to_string()]);
        let options = [
            ("--cores", Some(self.cores_of(process))),
            (
                "--parallelism",
                self.job.parallelism.map(|p| p.subtasks().to_string()),
            ),
            (
                "--transport",
                self.job.transport.map(|transport| transport.to_string()),
            ),
            ("--idle", self.job.idle.map(|idle| idle.to_string())),
            ("--host", self.job.host.map(|host| host.to_string())),
            (
                "--driver",
                self.process.driver.map(|driver| driver.to_string()),
            ),
            (
                "--connect-timeout",
                self.process.connect_timeout.map(milliseconds),
            ),
            ("--lost-after", self.process.lost_after.map(milliseconds)),
        ];
        for (option, value) in options {
            command.args(value.iter().flat_map(|value| [option, value.as_str()]));
        }
        // Signals of the terminal go to this process alone, which tells the others.
        command.process_group(0);
        command
    }

    /// The CPUs of a process: its part of those that this one may use, or one of them where
    /// there are more processes.
    fn cores_of(&self, process: usize) -> String {
        let share = share_of(&self.planned.cpus, process, self.planned.plan.processes);
        match share[..] {
            [only] => format!("{only}-{only}"),
            _ => {
                let cpus = share.iter().map(ToString::to_string);
                cpus.collect::<Vec<_>>().join(",")
            }
        }
    }
}

/// The part of `cpus` that process `process` of `processes` gets.
pub(crate) fn share_of(cpus: &[usize], process: usize, processes: usize) -> Vec<usize> {
    if cpus.len() < processes {
        let only = cpus.iter().cycle().nth(process);
        return only.into_iter().copied().collect();
    }
    let begin = |process| process * cpus.len() / processes;
    cpus[begin(process)..begin(process + 1)].to_vec()
}

/// A time that is not 0.
pub(crate) fn some_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: UnitError| error.to_string())?;
    match span.ms() {
        0 => Err("must be more than 0".to_owned()),
        _ => Ok(span),
    }
}

fn lost_after(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: UnitError| error.to_string())?;
    let options = ControlOptions::default().lost_after(span.into());
    options.validate().map(|()| span)
}

/// Makes sure that what reads standard input or writes standard output does so in this process,
/// where the others are started by it and have neither.
///
/// # Errors
/// Which source or sink does not.
pub(crate) fn has_standard_streams(planned: &Planned) -> Result<(), String> {
    for connected in planned.sources.iter().chain(&planned.sinks) {
        let what = match connected.connector.as_str() {
            "stdin" => "the source reads standard input",
            "stdout" => "the sink writes standard output",
            _ => continue,
        };
        let name = &connected.name;
        let mut chains = planned.plan.chains.iter();
        let chain = chains.find(|chain| chain.names.contains(name));
        let mut processes = chain.iter().flat_map(|chain| &chain.processes);
        if let Some(process) = processes.find(|process| **process != 0) {
            return Err(format!(
                "{name} is to run in process {process}, but {what}, and a process that \
                 `--processes` starts has none: leave its key `process` out, so that it runs in \
                 process 0, or start each process by itself with `--hosts` and `--process`"
            ));
        }
    }
    Ok(())
}

fn milliseconds(span: Span) -> String {
    format!("{}ms", Duration::from(span).as_millis())
}

impl Others {
    /// Starts process `process`. What it says comes out here, with its number ahead.
    fn start(&mut self, process: usize, command: &mut Command) -> std::io::Result<()> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().map(|output| print(process, output));
        let errors = child.stderr.take().map(|errors| print(process, errors));
        self.children.push(child);
        self.printers.extend(output.into_iter().chain(errors));
        Ok(())
    }

    /// The first process that has ended, if one has.
    fn first_ended(&mut self) -> Option<(usize, ExitStatus)> {
        let mut numbered = (1..).zip(&mut self.children);
        numbered.find_map(|(process, child)| Some((process, child.try_wait().ok()??)))
    }

    /// Waits for the end of all, and ends those that stay.
    #[allow(
        clippy::disallowed_methods,
        reason = "nothing runs in this process any more"
    )]
    pub(crate) fn leave(&mut self) {
        let mut waited = Duration::ZERO;
        while waited < LEAVE_TIME_MAX && self.children.iter_mut().any(is_running) {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        self.end();
        for printer in self.printers.drain(..) {
            // What it could not print is lost, and nothing else.
            drop(printer.join());
        }
    }

    fn end(&mut self) {
        for child in &mut self.children {
            // One that has ended already cannot be ended, and need not be.
            drop(child.kill());
            drop(child.wait());
        }
        self.children.clear();
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

/// Prints what a process says, line by line, with its number ahead.
fn print(process: usize, output: impl Read + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            say(format_args!(
                "[{process}] {}\n",
                String::from_utf8_lossy(&line)
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_host_share_its_cpus() {
        let share = |cpus: &[usize], processes| {
            let shares = (0..processes).map(|process| share_of(cpus, process, processes));
            shares.collect::<Vec<_>>()
        };
        assert_eq!(share(&[2, 3, 5], 2), [vec![2], vec![3, 5]]);
        assert_eq!(share(&[2, 3], 3), [[2], [3], [2]]);
        assert_eq!(share(&[4], 1), [[4]]);
    }
}
