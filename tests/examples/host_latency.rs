//! What a host adds to the way between two workers.
//!
//! Goal: p50 and p99 of a round trip of one-row elements between two pinned workers, for each
//! host and idle policy, so that hosts can be compared on this machine.
//! Method: two tasks with a local edge each way. The first sends an element when the last one
//! has come back; the second returns what it gets. All cases run in turn, several times over,
//! so that a change of the machine's load meets all of them.
//! Not a goal: throughput, or the cost of anything but hosts and edges.
//!
//! `host_latency [ROUND_TRIPS [REPETITIONS]]`, 100,000 and 3 if not given.

use std::io::{self, Write};

use ringway::batch::{Row, Rows};
use ringway::clock::{Clock, Monotonic, ProcessingTime};
use ringway::edge::{EdgeOptions, Popped, Receiver, Sender, local};
use ringway::element::StreamElement;
use ringway::placement::{AllowedCpus, Cores, CpuId, Placement};
use ringway::task::{
    Latency, Step, Task, TaskCommand, TaskError, TaskOutcome, TaskReport, TaskState,
};
use ringway::worker::{
    Host, HostKind, HostedWorker, IdlePolicy, Worker, WorkerCommand, WorkerEvent, WorkerThread,
};
use ringway_shm::{Bell, Consumer, Producer, ring};

type Failure = Box<dyn std::error::Error>;

const HOSTS: [HostKind; 2] = [HostKind::Thread, HostKind::Glommio];
const POLICIES: [IdlePolicy; 3] = [IdlePolicy::Spin, IdlePolicy::Adaptive, IdlePolicy::Park];

fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|argument| argument.parse::<u64>());
    let round_trips = numbers.next().transpose()?.unwrap_or(100_000);
    let repetitions = numbers.next().transpose()?.unwrap_or(3);
    let placement = Placement::plan(AllowedCpus::of_process()?, &Cores::Count(2))?;
    let mut out = io::stdout().lock();
    if let Some(warning) = placement.warning() {
        writeln!(out, "# {warning}")?;
    }
    writeln!(out, "host     idle      p50_us  p99_us  max_us")?;
    for _ in 0..repetitions {
        for policy in POLICIES {
            for kind in HOSTS {
                let latency = measure(&Host::new(kind), policy, placement.cpus(), round_trips)?;
                let us = |quantile| latency.quantile(quantile).as_secs_f64() * 1e6;
                let max = latency.max().as_secs_f64() * 1e6;
                let (kind, policy) = (kind.to_string(), policy.to_string());
                let (p50, p99) = (us(0.5), us(0.99));
                writeln!(
                    out,
                    "{kind:<8} {policy:<9} {p50:>6.2} {p99:>7.2} {max:>7.0}"
                )?;
            }
        }
    }
    Ok(())
}

/// The round-trip times of one run.
fn measure(
    host: &Host,
    policy: IdlePolicy,
    cpus: &[CpuId],
    round_trips: u64,
) -> Result<Latency, Failure> {
    if let Some(cause) = &host.in_use().cause {
        return Err(format!("there is nothing to compare: {cause}").into());
    }
    let (here, there) = (host.bell()?, host.bell()?);
    let (forth, arrives) = local::open(EdgeOptions::named("forth"), here.clone(), there.clone());
    let (back, returns) = local::open(EdgeOptions::named("back"), there.clone(), here.clone());
    let asks = Ask {
        out: Some(forth),
        back: returns,
        clock: Clock::start(),
        sent_at: None,
        left: round_trips,
        latency: Latency::default(),
    };
    let echoes = Echo {
        into: arrives,
        out: Some(back),
    };
    let mut asking = start(host, "ask", cpus[0], policy, here, Box::new(asks))?;
    let echoing = start(host, "echo", cpus[1], policy, there, Box::new(echoes))?;
    let mut latency = Latency::default();
    while let Ok(event) = asking.events.pop_blocking(None) {
        if let WorkerEvent::Finished { report, .. } = event {
            latency.merge(&report.latency);
        }
    }
    for worker in [asking, echoing] {
        worker.worker.join().map_err(|_| "a worker panicked")?;
    }
    match latency.count() {
        count if count == round_trips => Ok(latency),
        count => Err(format!("{count} of {round_trips} elements came back").into()),
    }
}

/// A worker with its job's ends of the rings.
struct Running {
    worker: HostedWorker,
    events: Consumer<WorkerEvent>,
    /// A worker whose job has dropped this cancels its tasks.
    _commands: Producer<WorkerCommand>,
}

fn start(
    host: &Host,
    name: &str,
    cpu: CpuId,
    policy: IdlePolicy,
    bell: Bell,
    task: Box<dyn Task>,
) -> Result<Running, Failure> {
    let (commands, obeyed) = ring(1, Bell::thread(), bell.clone());
    let (told, events) = ring(16, bell.clone(), Bell::thread());
    let thread = WorkerThread {
        name: name.to_owned(),
        cpu: Some(cpu),
        policy,
    };
    let make = move || Worker::new(vec![task], Clock::start(), bell, obeyed, told);
    Ok(Running {
        worker: host.spawn(thread, make)?,
        events,
        _commands: commands,
    })
}

/// Sends an element, waits until it is back, and again.
struct Ask {
    out: Option<Sender<Rows<i64>>>,
    back: Receiver<Rows<i64>>,
    clock: Clock,
    sent_at: Option<Monotonic>,
    left: u64,
    latency: Latency,
}

/// Sends back what it gets.
struct Echo {
    into: Receiver<Rows<i64>>,
    out: Option<Sender<Rows<i64>>>,
}

impl Ask {
    fn send(&mut self) -> Option<()> {
        let mut row = Rows::with_capacity(1);
        row.push(Row::untimed(self.left.cast_signed()));
        self.sent_at = Some(self.clock.now());
        self.out.as_mut()?.try_push(StreamElement::Data(row)).ok()
    }
}

impl Task for Ask {
    fn name(&self) -> &str {
        "ask"
    }

    fn open(&mut self, clock: Clock, _: &Bell) -> Result<(), TaskError> {
        self.clock = clock;
        Ok(())
    }

    fn step(&mut self) -> Step {
        let Some(sent_at) = self.sent_at else {
            return self
                .send()
                .map_or_else(|| over(TaskOutcome::Cancelled), |()| went_on(1));
        };
        match self.back.try_pop() {
            Popped::Empty => went_on(0),
            Popped::Ended(_) => over(TaskOutcome::Cancelled),
            Popped::Element(_) => {
                self.latency.record(self.clock.now().since(sent_at));
                self.left -= 1;
                if self.left > 0 {
                    return self
                        .send()
                        .map_or_else(|| over(TaskOutcome::Cancelled), |()| went_on(1));
                }
                if let Some(out) = self.out.take() {
                    out.finish().expect("the receiver stays to the end");
                }
                over(TaskOutcome::Ended)
            }
        }
    }

    fn command(&mut self, _: &TaskCommand) {}

    fn next_timer(&self) -> Option<ProcessingTime> {
        None
    }

    fn report(&self) -> TaskReport {
        TaskReport {
            latency: self.latency.clone(),
            ..TaskReport::default()
        }
    }

    fn abandon(&mut self, _: &str) {}

    fn running(&self) -> String {
        self.name().to_owned()
    }
}

impl Task for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn open(&mut self, _: Clock, _: &Bell) -> Result<(), TaskError> {
        Ok(())
    }

    fn step(&mut self) -> Step {
        let sent = match (self.into.try_pop(), &mut self.out) {
            (Popped::Empty, _) => return went_on(0),
            (Popped::Element(element), Some(out)) => out.try_push(element).is_ok(),
            (Popped::Element(_), None) | (Popped::Ended(_), _) => false,
        };
        if sent {
            return went_on(1);
        }
        if let Some(out) = self.out.take() {
            out.finish().expect("the receiver stays to the end");
        }
        over(TaskOutcome::Ended)
    }

    fn command(&mut self, _: &TaskCommand) {}

    fn next_timer(&self) -> Option<ProcessingTime> {
        None
    }

    fn report(&self) -> TaskReport {
        TaskReport::default()
    }

    fn abandon(&mut self, _: &str) {}

    fn running(&self) -> String {
        self.name().to_owned()
    }
}

fn went_on(work: usize) -> Step {
    Step {
        work,
        state: TaskState::Running,
    }
}

fn over(outcome: TaskOutcome) -> Step {
    Step {
        work: 1,
        state: TaskState::Finished(outcome),
    }
}
