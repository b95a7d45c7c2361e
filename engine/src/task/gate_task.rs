//! A task whose head is an input gate.

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::{Clock, ProcessingTime};
use crate::edge::Ending;
use crate::element::StreamElement;
use crate::gate::{GateEvent, InputGate};
use crate::limits::{STEP_ELEMENTS_MAX, STEP_TIME_MAX};

use super::chain::Chain;
use super::{Step, Task, TaskCommand, TaskError, TaskOutcome, TaskReport, TaskState};

/// A task whose head is an input gate.
pub struct GateTask<B: Payload> {
    gate: InputGate<B>,
    chain: Chain<B>,
    cancelled: bool,
    rows_in: u64,
    barriers_lost: u64,
}

impl<B: Payload> GateTask<B> {
    /// A task that feeds `chain` from `gate`.
    pub fn new(gate: InputGate<B>, chain: Chain<B>) -> Self {
        Self {
            gate,
            chain,
            cancelled: false,
            rows_in: 0,
            barriers_lost: 0,
        }
    }

    /// Takes elements until the budget of the step is used up. Returns how many, and the step
    /// if it ends the task.
    fn feed(&mut self) -> (usize, Option<Step>) {
        let began = self.chain.scope().clock.now();
        for taken in 0..STEP_ELEMENTS_MAX {
            let now = self.chain.scope().clock.now();
            if self.chain.is_full() || now.since(began) > STEP_TIME_MAX {
                return (taken, None);
            }
            let event = self.gate.poll(now);
            self.chain.scope().origin = self.gate.origin();
            match event {
                GateEvent::Empty => return (taken, None),
                GateEvent::Ended(ending) => return (taken + 1, self.input_ended(ending)),
                other => self.take(other),
            }
        }
        (STEP_ELEMENTS_MAX, None)
    }

    fn take(&mut self, event: GateEvent<B>) {
        match event {
            GateEvent::Data { batch, .. } => {
                self.rows_in += batch.rows() as u64;
                self.chain.push(StreamElement::Data(batch));
            }
            GateEvent::Watermark(watermark) => self.chain.push(StreamElement::Watermark(watermark)),
            GateEvent::Drain(drain) => self.chain.push(StreamElement::Drain(drain)),
            GateEvent::Barrier {
                barrier,
                unaligned_first: true,
            } => self.chain.overtake(barrier),
            GateEvent::Barrier { barrier, .. } => self.chain.push(StreamElement::Barrier(barrier)),
            GateEvent::BarrierLost { id, why } => {
                tracing::warn!(
                    task = self.chain.name(),
                    checkpoint = id,
                    why,
                    "checkpoint lost"
                );
                self.barriers_lost += 1;
            }
            GateEvent::RecordingsClosed { .. } | GateEvent::Absorbed => {}
            GateEvent::Empty | GateEvent::Ended(_) => unreachable!("dealt with by the caller"),
        }
    }

    /// Barriers that overtake are dealt with also while the chain cannot be fed: getting past
    /// what waits is what they are for.
    fn take_urgent(&mut self, step: Step) -> Step {
        if !self.chain.is_running() || matches!(step.state, TaskState::Finished(_)) {
            return step;
        }
        let mut taken = 0;
        let now = self.chain.scope().clock.now();
        while let Some(event) = self.gate.poll_urgent(now) {
            self.take(event);
            taken += 1;
        }
        if taken == 0 {
            return step;
        }
        self.chain.end_step(step.work + taken)
    }

    fn input_ended(&mut self, ending: Ending) -> Option<Step> {
        match ending {
            Ending::End => self.chain.end(),
            Ending::Stopped => self.chain.stop(),
            Ending::Cancelled => return Some(self.chain.cancel()),
            Ending::Failed(failure) => return Some(self.chain.fail(TaskError::Edge(failure))),
        }
        None
    }
}

impl<B: Payload> Task for GateTask<B> {
    fn name(&self) -> &str {
        self.chain.name()
    }

    fn open(&mut self, clock: Clock, bell: &Bell) -> Result<(), TaskError> {
        self.chain.open(clock, bell)
    }

    fn step(&mut self) -> Step {
        if self.cancelled {
            return self.chain.cancel();
        }
        self.chain.begin_step();
        let step = match self.chain.catch_up() {
            Some(step) => self.take_urgent(step),
            None if self.chain.is_closed() => {
                self.gate.close();
                return self.chain.leave();
            }
            None => {
                let (taken, over) = self.feed();
                over.unwrap_or_else(|| self.chain.end_step(taken))
            }
        };
        if let TaskState::Finished(TaskOutcome::Failed(error)) = &step.state {
            self.gate.fail(&error.to_string());
        }
        step
    }

    fn command(&mut self, command: &TaskCommand) {
        match command {
            TaskCommand::Cancel => self.cancelled = true,
            TaskCommand::Abort(id) => self.gate.abort(*id),
            other => self.chain.command(other),
        }
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        let clock = self.chain.clock();
        let escalates_at = self.gate.escalates_at();
        let escalates_at = escalates_at.map(|at| clock.processing_time(at).saturating_add(1));
        [escalates_at, self.chain.next_timer()]
            .into_iter()
            .flatten()
            .min()
    }

    fn report(&self) -> TaskReport {
        let mut report = TaskReport {
            rows_in: self.rows_in,
            elements_in: self.gate.elements_taken(),
            checkpoints_lost: self.barriers_lost,
            ..TaskReport::default()
        };
        report.set_watermark(self.gate.current_watermark());
        self.chain.report(&mut report);
        report
    }

    fn abandon(&mut self, reason: &str) {
        self.chain.abandon(reason);
    }

    fn running(&self) -> String {
        self.chain.running()
    }
}
