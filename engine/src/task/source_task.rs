//! A task whose head is a source.

use std::collections::VecDeque;

use ringway_shm::Bell;

use crate::batch::Payload;
use crate::clock::{Clock, ProcessingTime};
use crate::element::{Barrier, EVENT_TIME_MIN, EventTime, StreamElement, Watermark};
use crate::error::OperatorError;
use crate::limits::{STEP_ELEMENTS_MAX, STEP_TIME_MAX};
use crate::operator::{Collector, Emitter, Source, SourceProgress, StepScope};

use super::chain::Chain;
use super::report::Discard;
use super::stage::{Stage, StageItem};
use super::{Step, Task, TaskCommand, TaskError, TaskReport};

/// A task whose head is a source.
pub struct SourceTask<B: Payload> {
    source: Box<dyn Source<B>>,
    chain: Chain<B>,
    commands: VecDeque<TaskCommand>,
    cancelled: bool,
    wake_at: Option<ProcessingTime>,
    rows: u64,
    watermark: EventTime,
}

impl<B: Payload> SourceTask<B> {
    /// A task that feeds `chain` from `source`.
    pub fn new(source: Box<dyn Source<B>>, chain: Chain<B>) -> Self {
        Self {
            source,
            chain,
            commands: VecDeque::new(),
            cancelled: false,
            wake_at: None,
            rows: 0,
            watermark: EVENT_TIME_MIN,
        }
    }

    /// Takes the commands that have come, between two polls of the source.
    fn obey(&mut self) {
        while let Some(command) = self.commands.pop_front() {
            match command {
                TaskCommand::End if self.source.is_inner() => {}
                TaskCommand::End if self.chain.is_running() => self.chain.end_source(),
                TaskCommand::Stop if self.chain.is_running() => self.chain.stop(),
                TaskCommand::Trigger(barrier) if self.chain.is_running() => self.begin(barrier),
                other => self.chain.command(&other),
            }
        }
    }

    fn begin(&mut self, barrier: Barrier) {
        if let Err(error) = self.source.snapshot(barrier, &mut Discard) {
            let head = self.chain.head().clone();
            self.chain.scope().lose_checkpoint(&head, barrier, &error);
            // The barrier goes on all the same: gates that have it from other sources wait for
            // it here.
        }
        if barrier.mode.is_unaligned() {
            self.chain.overtake(barrier);
        } else {
            self.chain.push(StreamElement::Barrier(barrier));
        }
    }

    /// Polls the source until it has nothing or the budget of the step is used up.
    fn feed(&mut self) -> usize {
        let began = self.chain.scope().clock.now();
        let mut emitted = 0;
        while emitted < STEP_ELEMENTS_MAX && !self.chain.is_full() {
            let now = self.chain.scope().clock.now();
            if now.since(began) > STEP_TIME_MAX {
                break;
            }
            let (stage, scope) = self.chain.parts();
            scope.origin = now;
            scope.running = 0;
            let mut head = Head {
                stage,
                rows: 0,
                elements: 0,
                watermark: self.watermark,
            };
            let result = self.source.poll(&mut Emitter::new(&mut head, scope, 0));
            let head_elements = head.elements;
            emitted += head_elements;
            self.rows += head.rows;
            self.watermark = head.watermark;
            match result {
                // Ready without an element is still work: the worker must not park on it.
                Ok(SourceProgress::Ready) => emitted += usize::from(head_elements == 0),
                Ok(SourceProgress::Pending(wake_at)) => {
                    self.wake_at = wake_at;
                    break;
                }
                Ok(SourceProgress::End) => {
                    self.chain.end_source();
                    return emitted + 1;
                }
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        emitted
    }

    fn fail(&mut self, error: OperatorError) {
        self.chain.scope().fail(0, error);
    }
}

impl<B: Payload> Task for SourceTask<B> {
    fn name(&self) -> &str {
        self.chain.name()
    }

    fn open(&mut self, clock: Clock, bell: &Bell) -> Result<(), TaskError> {
        self.chain.open(clock, bell)?;
        let subtask = self.chain.head().clone();
        self.source
            .open(&subtask, bell)
            .map_err(|error| TaskError::Operator {
                operator: subtask.to_string(),
                message: error.to_string(),
            })
    }

    fn step(&mut self) -> Step {
        if self.cancelled {
            return self.chain.cancel();
        }
        self.wake_at = None;
        self.chain.begin_step();
        self.obey();
        if let Some(step) = self.chain.catch_up() {
            return step;
        }
        if self.chain.is_closed() {
            return self.chain.leave();
        }
        let emitted = self.feed();
        self.chain.end_step(emitted)
    }

    fn command(&mut self, command: &TaskCommand) {
        match command {
            TaskCommand::Cancel => self.cancelled = true,
            other => self.commands.push_back(other.clone()),
        }
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        [self.wake_at, self.chain.next_timer()]
            .into_iter()
            .flatten()
            .min()
    }

    fn report(&self) -> TaskReport {
        let mut report = TaskReport {
            source_rows: match self.source.is_inner() {
                true => 0,
                false => self.rows,
            },
            ..TaskReport::default()
        };
        report.set_watermark(self.watermark);
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

/// The first stage of the chain as the source's emitter sees it, with what goes through it.
struct Head<'a, B: Payload> {
    stage: &'a mut dyn Stage<B>,
    rows: u64,
    elements: usize,
    watermark: EventTime,
}

impl<B: Payload> Collector<B> for Head<'_, B> {
    fn data(&mut self, batch: B, step: &mut StepScope) {
        self.rows += batch.rows() as u64;
        self.elements += 1;
        self.stage
            .push(StageItem::Element(StreamElement::Data(batch)), step);
    }

    fn watermark(&mut self, watermark: Watermark, step: &mut StepScope) {
        self.elements += 1;
        if !watermark.idle {
            self.watermark = watermark.timestamp;
        }
        self.stage.push(
            StageItem::Element(StreamElement::Watermark(watermark)),
            step,
        );
    }

    fn is_full(&self) -> bool {
        self.stage.is_full()
    }
}
