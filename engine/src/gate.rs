//! The input gate: several edges into one subtask, with their watermarks merged and their
//! barriers aligned.
//!
//! A blocked input is simply not popped: what waits there waits on its edge, and
//! back-pressure does the rest.

use std::collections::VecDeque;
use std::time::Duration;

use crate::align::{AlignFact, Alignment};
use crate::batch::Payload;
use crate::clock::Monotonic;
use crate::edge::{Ending, Popped, Receiver};
use crate::element::{Barrier, Drain, EventTime, StreamElement, Watermark};
use crate::watermark::WatermarkMerge;

/// Elements taken from one input before the next is looked at: enough that a lone busy input
/// among many idle ones is not paid for with a scan of all of them each time.
const BURST_ELEMENTS_MAX: usize = 8;

/// What the gate has for its task.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum GateEvent<B> {
    /// A batch that came on `input`.
    Data {
        /// The input, from 0.
        input: usize,
        /// The batch.
        batch: B,
    },
    /// The merged watermark of all inputs has moved.
    Watermark(Watermark),
    /// A checkpoint: snapshot, then pass the barrier on. `unaligned_first` says to pass it on
    /// ahead of what is queued behind this subtask's outputs.
    Barrier {
        /// The barrier to pass on.
        barrier: Barrier,
        /// Whether it goes ahead of what is queued.
        unaligned_first: bool,
    },
    /// A checkpoint will never complete here: answer it negatively.
    BarrierLost {
        /// Its id.
        id: u64,
        /// Why, for people.
        why: &'static str,
    },
    /// All channel state of an unaligned checkpoint has been recorded.
    RecordingsClosed {
        /// Its id.
        id: u64,
    },
    /// A subtask upstream is winding down.
    Drain(Drain),
    /// An element was taken that only changed what the gate knows. There may be more: ask again.
    Absorbed,
    /// Nothing now.
    Empty,
    /// The gate is done in this way: `End` and `Stopped` once every input is, `Cancelled` and
    /// `Failed` as soon as one is. It is said again on every further call.
    Ended(Ending),
}

/// Several edges into one subtask.
#[derive(Debug)]
pub struct InputGate<B: Payload> {
    inputs: Vec<Input<B>>,
    alignment: Alignment,
    watermarks: WatermarkMerge,
    escalate_after: Option<Duration>,
    events: VecDeque<GateEvent<B>>,
    ended: Option<Ending>,
    next: usize,
    burst: usize,
    origin: Monotonic,
    elements_taken: u64,
}

#[derive(Debug)]
struct Input<B: Payload> {
    receiver: Option<Receiver<B>>,
    stopped: bool,
}

impl<B: Payload> InputGate<B> {
    /// A gate over these edges.
    ///
    /// # Panics
    /// Without any edge: a subtask without input is a source.
    pub fn new(receivers: Vec<Receiver<B>>) -> Self {
        assert!(!receivers.is_empty(), "a gate has at least one input");
        let count = receivers.len();
        let inputs = receivers
            .into_iter()
            .map(|r| Input {
                receiver: Some(r),
                stopped: false,
            })
            .collect();
        Self {
            inputs,
            alignment: Alignment::new(count),
            watermarks: WatermarkMerge::new(count),
            escalate_after: None,
            events: VecDeque::new(),
            ended: None,
            next: 0,
            burst: 0,
            origin: Monotonic::default(),
            elements_taken: 0,
        }
    }

    /// Turns an aligned barrier unaligned when its alignment takes longer than this.
    pub fn escalate_after(&mut self, after: Option<Duration>) {
        self.escalate_after = after;
    }

    /// The next thing the task has to deal with. Takes at most one element off an edge.
    ///
    /// Inputs are visited in turn, a few elements at a time; those that wait for a barrier
    /// are passed over.
    pub fn poll(&mut self, now: Monotonic) -> GateEvent<B> {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        if let Some(ending) = &self.ended {
            return GateEvent::Ended(ending.clone());
        }
        self.escalate_overdue(now);
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        for _ in 0..self.inputs.len() {
            let Some(event) = self.poll_input(self.next, now) else {
                self.turn();
                continue;
            };
            self.burst += 1;
            if self.burst >= BURST_ELEMENTS_MAX {
                self.turn();
            }
            return event;
        }
        GateEvent::Empty
    }

    /// What a task must hear of while it cannot take elements because its output is full or an
    /// operator has not finished: barriers that overtake, and what follows from them. Takes
    /// nothing that waits in order.
    pub fn poll_urgent(&mut self, now: Monotonic) -> Option<GateEvent<B>> {
        if self.ended.is_none() && self.events.is_empty() {
            self.escalate_overdue(now);
            for input in 0..self.inputs.len() {
                if !self.events.is_empty() {
                    break;
                }
                self.take_priority(input, now);
            }
        }
        let is_urgent = matches!(
            self.events.front()?,
            GateEvent::Barrier {
                unaligned_first: true,
                ..
            } | GateEvent::BarrierLost { .. }
                | GateEvent::RecordingsClosed { .. }
        );
        if is_urgent {
            self.events.pop_front()
        } else {
            None
        }
    }

    /// Gives up checkpoint `id`: the inputs that wait for it are released.
    pub fn abort(&mut self, id: u64) {
        let facts = self.alignment.abort(id);
        self.act(facts);
    }

    /// Turns checkpoint `id` unaligned, if it is pending and aligned.
    pub fn escalate(&mut self, id: u64) {
        let facts = self.alignment.escalate(id);
        self.act(facts);
    }

    /// Adds an edge. Its barriers count from the next checkpoint on.
    ///
    /// # Errors
    /// While a checkpoint is pending: add it later. When the gate is full or its stream is over:
    /// it has to go elsewhere. The receiver comes back.
    pub fn add_input(&mut self, receiver: Receiver<B>) -> Result<usize, Box<Receiver<B>>> {
        if self.ended.is_some() {
            return Err(Box::new(receiver));
        }
        let Ok(index) = self.alignment.add_input() else {
            return Err(Box::new(receiver));
        };
        let merged = self.watermarks.add_input();
        debug_assert_eq!(index, merged);
        self.inputs.push(Input {
            receiver: Some(receiver),
            stopped: false,
        });
        Ok(index)
    }

    /// The merged watermark.
    pub fn current_watermark(&self) -> EventTime {
        self.watermarks.current()
    }

    /// When the element that was taken last entered the job.
    pub fn origin(&self) -> Monotonic {
        self.origin
    }

    /// Elements taken off the edges so far, data and control.
    pub fn elements_taken(&self) -> u64 {
        self.elements_taken
    }

    /// When a barrier that waits turns unaligned, unless it goes on before: poll then, also if
    /// nothing has arrived.
    pub fn escalates_at(&self) -> Option<Monotonic> {
        let after = self.escalate_after?;
        let first = self.alignment.waiting().map(|(_, at)| at).min()?;
        self.alignment.blocked().then(|| first.after(after))
    }

    /// The edges that are still open.
    pub fn receivers(&self) -> impl Iterator<Item = &Receiver<B>> {
        self.inputs
            .iter()
            .filter_map(|input| input.receiver.as_ref())
    }

    /// Whether an input waits for a barrier to come on the others.
    pub fn is_aligning(&self) -> bool {
        self.alignment.blocked()
    }

    /// Closes every edge that is still open, in order: the senders learn that no more is wanted.
    pub fn close(&mut self) {
        self.take_receivers().for_each(Receiver::close);
    }

    /// Fails every edge that is still open: the senders learn that this subtask cannot go on.
    pub fn fail(&mut self, reason: &str) {
        self.take_receivers()
            .for_each(|receiver| receiver.fail(reason));
    }

    fn take_receivers(&mut self) -> impl Iterator<Item = Receiver<B>> {
        self.inputs
            .iter_mut()
            .filter_map(|input| input.receiver.take())
    }

    fn turn(&mut self) {
        self.burst = 0;
        self.next = (self.next + 1) % self.inputs.len();
    }

    /// One element of an input; `None` where there is none or it waits.
    fn poll_input(&mut self, index: usize, now: Monotonic) -> Option<GateEvent<B>> {
        if self.take_priority(index, now) {
            return Some(self.next_event());
        }
        let receiver = self.inputs[index].receiver.as_mut()?;
        if self.alignment.is_paused(index) {
            return None;
        }
        match receiver.try_pop() {
            Popped::Empty => None,
            Popped::Element(element) => {
                self.origin = receiver.origin();
                self.elements_taken += 1;
                Some(self.take(index, element, now))
            }
            Popped::Ended(ending) => {
                self.input_ended(index, ending);
                Some(self.next_event())
            }
        }
    }

    /// Takes the barrier that overtook on an input, if there is one.
    fn take_priority(&mut self, index: usize, now: Monotonic) -> bool {
        let Some(receiver) = self.inputs[index].receiver.as_mut() else {
            return false;
        };
        if !receiver.has_priority() {
            return false;
        }
        let Some((barrier, _)) = receiver.poll_priority() else {
            return false;
        };
        self.elements_taken += 1;
        // It overtook elements of this input, so the others must not make it wait.
        let escalated = self.alignment.escalate(barrier.id);
        self.act(escalated);
        let facts = self.alignment.on_barrier(index, barrier, now);
        self.act(facts);
        true
    }

    /// What an element means for the task.
    fn take(&mut self, index: usize, element: StreamElement<B>, now: Monotonic) -> GateEvent<B> {
        match element {
            StreamElement::Data(batch) => {
                return GateEvent::Data {
                    input: index,
                    batch,
                };
            }
            StreamElement::Drain(drain) => return GateEvent::Drain(drain),
            StreamElement::Watermark(watermark) => {
                let merged = self.watermarks.on_watermark(index, watermark);
                self.events.extend(merged.map(GateEvent::Watermark));
            }
            StreamElement::Barrier(barrier) => {
                let facts = self.alignment.on_barrier(index, barrier, now);
                self.act(facts);
            }
        }
        self.next_event()
    }

    /// The first event, after something was taken.
    fn next_event(&mut self) -> GateEvent<B> {
        self.events.pop_front().unwrap_or(GateEvent::Absorbed)
    }

    /// An input that ended or was stopped in order counts as arrived. One that was stopped
    /// keeps its watermark: nothing after it is final.
    fn input_ended(&mut self, index: usize, ending: Ending) {
        self.inputs[index].receiver = None;
        match ending {
            Ending::End => {
                let facts = self.alignment.on_input_closed(index);
                self.act(facts);
                self.watermarks.close(index);
                let merged = self.watermarks.refresh();
                self.events.extend(merged.map(GateEvent::Watermark));
            }
            Ending::Stopped => {
                self.inputs[index].stopped = true;
                let facts = self.alignment.on_input_closed(index);
                self.act(facts);
            }
            Ending::Cancelled | Ending::Failed(_) => {
                let facts = self.alignment.on_input_failed(index);
                self.act(facts);
                self.end(ending);
                return;
            }
        }
        if self.inputs.iter().all(|input| input.receiver.is_none()) {
            let stopped = self.inputs.iter().any(|input| input.stopped);
            self.end(if stopped {
                Ending::Stopped
            } else {
                Ending::End
            });
        }
    }

    fn end(&mut self, ending: Ending) {
        self.ended = Some(ending.clone());
        self.events.push_back(GateEvent::Ended(ending));
    }

    fn act(&mut self, facts: Vec<AlignFact>) {
        let events = facts.into_iter().filter_map(|fact| match fact {
            AlignFact::Forward {
                barrier,
                unaligned_first,
                ..
            } => Some(GateEvent::Barrier {
                barrier,
                unaligned_first,
            }),
            AlignFact::RecordingsClosed { id } => Some(GateEvent::RecordingsClosed { id }),
            AlignFact::Superseded { id } => Some(GateEvent::BarrierLost {
                id,
                why: "an input went on to a newer barrier without this one",
            }),
            AlignFact::Aborted { id } => Some(GateEvent::BarrierLost {
                id,
                why: "the checkpoint was given up",
            }),
            AlignFact::Refused { id, .. } => Some(GateEvent::BarrierLost {
                id,
                why: "the gate does not take the barrier up",
            }),
            AlignFact::Released { .. } | AlignFact::Late { .. } => None,
        });
        self.events.extend(events);
    }

    fn escalate_overdue(&mut self, now: Monotonic) {
        let Some(after) = self.escalate_after else {
            return;
        };
        if !self.alignment.blocked() {
            return;
        }
        let overdue: Vec<u64> = self
            .alignment
            .waiting()
            .filter(|(_, first_at)| now.since(*first_at) >= after)
            .map(|(id, _)| id)
            .collect();
        overdue.into_iter().for_each(|id| self.escalate(id));
    }
}
