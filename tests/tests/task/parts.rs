//! Operators, sources and sinks that do odd things, and tasks made of them.

use std::sync::{Arc, Mutex};

use ringway::batch::{Row, Rows};
use ringway::clock::{Clock, ProcessingTime};
use ringway::edge::{EdgeOptions, Popped, Receiver, Sender, local};
use ringway::element::{Barrier, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::InputGate;
use ringway::operator::{
    Emitter, Operator, Progress, Sink, Source, SourceProgress, StateWriter, Subtask,
};
use ringway::output::{Forward, Output};
use ringway::task::{
    Chain, GateTask, OperatorStage, OutputStage, SideOutlet, SinkStage, Stage, Step, Task,
    TaskOutcome, TaskState,
};
use ringway_shm::Bell;

pub(crate) type Batch = Rows<i64>;

/// An operator with its side outputs among those of its task.
pub(crate) type Placed = (Box<dyn Operator<Batch, Batch>>, std::ops::Range<usize>);

pub(crate) fn edge(name: &str, capacity: usize) -> (Sender<Batch>, Receiver<Batch>) {
    let options = EdgeOptions::named(name).capacity(capacity);
    local::open(options, Bell::thread(), Bell::thread())
}

pub(crate) fn batch(values: impl IntoIterator<Item = i64>) -> Batch {
    values.into_iter().map(Row::untimed).collect()
}

pub(crate) fn data(values: impl IntoIterator<Item = i64>) -> StreamElement<Batch> {
    StreamElement::Data(batch(values))
}

pub(crate) fn pop_all(receiver: &mut Receiver<Batch>) -> Vec<StreamElement<Batch>> {
    let mut elements = Vec::new();
    while let Popped::Element(element) = receiver.try_pop() {
        elements.push(element);
    }
    elements
}

pub(crate) fn values(elements: &[StreamElement<Batch>]) -> Vec<i64> {
    let rows = elements.iter().filter_map(|element| match element {
        StreamElement::Data(batch) => Some(batch.iter().map(|row| row.value)),
        _ => None,
    });
    rows.flatten().collect()
}

/// Steps a task until it does no work, and says how it stands then.
pub(crate) fn settle(task: &mut dyn Task) -> TaskState {
    for _ in 0..100_000 {
        let Step { work, state } = task.step();
        if work == 0 || matches!(state, TaskState::Finished(_)) {
            return state;
        }
    }
    panic!("a task without new input comes to rest")
}

/// Steps a task to its end and takes what leaves it meanwhile.
pub(crate) fn run_out(
    task: &mut dyn Task,
    receiver: &mut Receiver<Batch>,
) -> (TaskOutcome, Vec<StreamElement<Batch>>) {
    let mut got = Vec::new();
    for _ in 0..1_000_000 {
        let step = task.step();
        got.extend(pop_all(receiver));
        if let TaskState::Finished(outcome) = step.state {
            got.extend(pop_all(receiver));
            return (outcome, got);
        }
    }
    panic!("the task comes to its end")
}

/// What a chain of operators ends in.
pub(crate) enum Tail {
    Edge(Box<Sender<Batch>>),
    Sink(Box<dyn Sink<Batch>>),
}

impl Tail {
    pub(crate) fn edge(sender: Sender<Batch>) -> Self {
        Self::Edge(Box::new(sender))
    }
}

/// A chain `op0 > op1 > ...` of these operators; those of them with a side output have it at
/// the position that they say.
pub(crate) fn chain(
    head: &str,
    operators: Vec<Placed>,
    tail: Tail,
    sides: Vec<Box<dyn SideOutlet>>,
) -> Chain<Batch> {
    let count = operators.len();
    let name = |position: usize| format!("{head}{position}");
    let mut subtasks: Vec<Subtask> = (0..=count).map(|p| Subtask::single(name(p))).collect();
    let mut stage: Box<dyn Stage<Batch>> = match tail {
        Tail::Edge(sender) => {
            subtasks.pop();
            let mut output = Output::new();
            output.add_group(Box::new(Forward), vec![*sender]);
            Box::new(OutputStage::new(output, count.saturating_sub(1)))
        }
        Tail::Sink(sink) => Box::new(SinkStage::new(sink, subtasks[count].clone(), count)),
    };
    for (position, (operator, sides)) in operators.into_iter().enumerate().rev() {
        let subtask = subtasks[position].clone();
        stage = Box::new(OperatorStage::new(
            operator, subtask, position, sides, stage,
        ));
    }
    if subtasks.is_empty() {
        subtasks.push(Subtask::single(name(0)));
    }
    Chain::new(stage, subtasks, sides)
}

pub(crate) fn open<T: Task>(mut task: T) -> T {
    task.open(Clock::start(), &Bell::thread()).unwrap();
    task
}

/// A task of one operator between one edge and another.
pub(crate) fn single(
    operator: impl Operator<Batch, Batch> + 'static,
    capacity: usize,
) -> (Sender<Batch>, impl Task, Receiver<Batch>) {
    let (sender, input) = edge("in", 1024);
    let (output, receiver) = edge("out", capacity);
    let operators: Vec<Placed> = vec![(Box::new(operator), 0..0)];
    let chain = chain("op", operators, Tail::edge(output), Vec::new());
    (
        sender,
        open(GateTask::new(InputGate::new(vec![input]), chain)),
        receiver,
    )
}

/// What happened, in order, as the parts of a chain saw it.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Passes everything on, and writes down what it was told under its name.
pub(crate) struct Recorder(pub(crate) &'static str, pub(crate) Log);

impl Operator<Batch, Batch> for Recorder {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        out.emit(batch);
        Ok(Progress::Done)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        let is_max = watermark == Watermark::MAX;
        let time = if is_max {
            "max".to_owned()
        } else {
            watermark.timestamp.to_string()
        };
        self.1.add(format!("{} watermark {time}", self.0));
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    fn on_end(&mut self, out: &mut Emitter<'_, Batch>) -> Result<Progress, OperatorError> {
        self.1.add(format!("{} end", self.0));
        out.emit(batch([-1]));
        Ok(Progress::Done)
    }

    fn snapshot(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        self.1.add(format!("{} snapshot {}", self.0, barrier.id));
        Ok(())
    }
}

/// Replaces each row `n` by `0..n`, one row a call: every call but the last is unfinished.
#[derive(Default)]
pub(crate) struct OneByOne {
    pub(crate) rest: std::ops::Range<i64>,
    pub(crate) log: Log,
}

impl Operator<Batch, Batch> for OneByOne {
    fn process(
        &mut self,
        batch: Batch,
        _: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        self.rest = 0..batch.iter().map(|row| row.value).sum();
        Ok(Progress::More)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Batch>) -> Result<Progress, OperatorError> {
        let Some(value) = self.rest.next() else {
            return Ok(Progress::Done);
        };
        out.emit(batch([value]));
        Ok(Progress::More)
    }

    fn snapshot(&mut self, barrier: Barrier, _: &mut dyn StateWriter) -> Result<(), OperatorError> {
        self.log
            .add(format!("snapshot {} at {}", barrier.id, self.rest.start));
        Ok(())
    }
}

/// Fails at the first batch.
pub(crate) struct FailingSink;

impl Sink<Batch> for FailingSink {
    fn write(&mut self, _: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        Err(OperatorError::new("disk full"))
    }
}

/// A source that never ends: one row a poll.
pub(crate) struct Endless(pub(crate) i64);

impl Source<Batch> for Endless {
    fn open(&mut self, _: &Subtask, _: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(&mut self, out: &mut Emitter<'_, Batch>) -> Result<SourceProgress, OperatorError> {
        out.emit(batch([self.0]));
        self.0 += 1;
        Ok(SourceProgress::Ready)
    }
}
