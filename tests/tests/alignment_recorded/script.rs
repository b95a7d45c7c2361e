//! Scripts: lines `command => answer`, where `new N` begins a run with N inputs.
//!
//! `wm I TS`, `idle I TS`, `barrier I ID [TERMINAL [MODE]]`, `close I`, `fail I`, `refresh`,
//! `add`, `abort ID`, `escalate ID`, `pending ID`, `recording ID`, `state`. A time is a
//! number, `min` or `max`. Lines that are empty or begin with `#` are comments.

use std::time::Duration;

use ringway::align::{AlignFact, Alignment};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, BarrierMode, Watermark};
use ringway::watermark::WatermarkMerge;

use super::align_model::AlignModel;

/// One line of a script.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) number: usize,
    /// The comment that stands above the run.
    pub(crate) case: String,
    pub(crate) command: String,
    pub(crate) answer: String,
}

/// The lines of a script that are not comments.
pub(crate) fn parse(text: &str) -> Vec<Line> {
    let mut case = String::new();
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(comment) = line.strip_prefix('#') {
            case = comment.trim().to_string();
        } else if let Some((command, answer)) = line.split_once("=>") {
            let (command, answer) = (command.trim().to_string(), answer.trim().to_string());
            lines.push(Line {
                number,
                case: case.clone(),
                command,
                answer,
            });
        } else {
            assert!(
                line.trim().is_empty(),
                "line {number} is no command: {line}"
            );
        }
    }
    lines
}

/// Alignment and merged watermark of one subtask, driven by commands. The naive model sees
/// the same commands and has to agree with every fact.
#[derive(Debug)]
pub(crate) struct Machine {
    align: Alignment,
    model: AlignModel,
    merge: WatermarkMerge,
    now: Monotonic,
}

/// What a command is answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Facts(Vec<AlignFact>),
    Text(String),
}

impl Machine {
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            align: Alignment::new(inputs),
            model: AlignModel::new(inputs),
            merge: WatermarkMerge::new(inputs),
            now: Monotonic(Duration::ZERO),
        }
    }

    /// Runs one command; `new N` begins again.
    pub(crate) fn run(&mut self, command: &str) -> Answer {
        self.now = self.now.after(Duration::from_millis(1));
        let words: Vec<&str> = command.split_whitespace().collect();
        let number = |at: usize| -> u64 { words[at].parse().expect("a number") };
        let input = || number(1) as usize;
        match words[0] {
            "new" => {
                *self = Self::new(input());
                Answer::Text("ok".into())
            }
            "barrier" => {
                let barrier = Barrier {
                    id: number(2),
                    terminal: words.get(3) == Some(&"1"),
                    mode: BarrierMode(words.get(4).map_or(0, |mode| mode.parse().expect("a mode"))),
                };
                let facts = self.align.on_barrier(input(), barrier, self.now);
                let expected = self.model.on_barrier(input(), barrier, self.now);
                let first_delivery = self.model.first_delivery(barrier.id);
                assert_eq!(self.align.first_delivery(barrier.id), first_delivery);
                agreed(facts, &expected)
            }
            "close" => {
                self.merge.close(input());
                agreed(
                    self.align.on_input_closed(input()),
                    &self.model.on_input_closed(input()),
                )
            }
            "fail" => agreed(
                self.align.on_input_failed(input()),
                &self.model.on_input_failed(input()),
            ),
            "abort" => agreed(self.align.abort(number(1)), &self.model.abort(number(1))),
            "escalate" => agreed(
                self.align.escalate(number(1)),
                &self.model.escalate(number(1)),
            ),
            "wm" => {
                let watermark = Watermark::active(parse_time(words[2]));
                Answer::Text(forwarded(self.merge.on_watermark(input(), watermark)))
            }
            "idle" => {
                let watermark = Watermark::idle(parse_time(words[2]));
                Answer::Text(forwarded(self.merge.on_watermark(input(), watermark)))
            }
            "refresh" => Answer::Text(forwarded(self.merge.refresh())),
            "add" => Answer::Text(self.add()),
            "pending" => {
                let inputs = self.align.pending_inputs(number(1));
                assert_eq!(inputs, self.model.pending_inputs(number(1)));
                Answer::Text(listed("pending", &inputs))
            }
            "recording" => {
                let inputs = self.align.recording_inputs(number(1));
                assert_eq!(inputs, self.model.recording_inputs(number(1)));
                Answer::Text(listed("recording", &inputs))
            }
            "state" => Answer::Text(self.state()),
            other => panic!("there is no command {other}"),
        }
    }

    fn add(&mut self) -> String {
        match self.align.add_input() {
            Ok(input) => {
                assert_eq!(input, self.merge.add_input());
                assert_eq!(Some(input), self.model.add_input());
                format!("added {input}")
            }
            Err(_) => {
                assert_eq!(self.model.add_input(), None);
                "refused".into()
            }
        }
    }

    fn state(&self) -> String {
        let inputs = 0..self.model.input_count();
        for input in inputs.clone() {
            assert_eq!(self.align.is_paused(input), self.model.is_paused(input));
        }
        let bits = |of: &dyn Fn(usize) -> bool| -> String {
            inputs
                .clone()
                .map(|input| if of(input) { '1' } else { '0' })
                .collect()
        };
        format!(
            "paused={} closed={} all_closed={} current={}",
            bits(&|input| self.align.is_paused(input)),
            bits(&|input| self.align.is_closed(input)),
            u8::from(self.align.all_closed()),
            shown_time(self.merge.current()),
        )
    }
}

impl Answer {
    /// The answer with every fact.
    pub(crate) fn in_full(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Facts(facts) if facts.is_empty() => "none".into(),
            Self::Facts(facts) => facts.iter().map(shown_fact).collect::<Vec<_>>().join(", "),
        }
    }

    /// The answer with what is forwarded alone.
    pub(crate) fn forwards(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Facts(facts) => {
                let forwards = facts
                    .iter()
                    .filter(|fact| matches!(fact, AlignFact::Forward { .. }));
                let shown: Vec<String> = forwards.map(shown_fact).collect();
                if shown.is_empty() {
                    "none".into()
                } else {
                    shown.join(", ")
                }
            }
        }
    }
}

fn agreed(facts: Vec<AlignFact>, expected: &[AlignFact]) -> Answer {
    let sorted = |facts: &[AlignFact]| {
        let mut shown: Vec<String> = facts.iter().map(|fact| format!("{fact:?}")).collect();
        shown.sort();
        shown
    };
    assert_eq!(
        sorted(&facts),
        sorted(expected),
        "the naive model says otherwise"
    );
    Answer::Facts(facts)
}

fn shown_fact(fact: &AlignFact) -> String {
    match fact {
        AlignFact::Forward {
            barrier,
            unaligned_first,
            ..
        } => format!(
            "forward barrier {} terminal={} mode={} unaligned_first={}",
            barrier.id,
            u8::from(barrier.terminal),
            barrier.mode.0,
            u8::from(*unaligned_first),
        ),
        AlignFact::RecordingsClosed { id } => format!("recordings closed {id}"),
        AlignFact::Superseded { id } => format!("superseded {id}"),
        AlignFact::Aborted { id } => format!("aborted {id}"),
        AlignFact::Refused { id, .. } => format!("refused {id}"),
        AlignFact::Released { input } => format!("released {input}"),
        AlignFact::Late { id } => format!("late {id}"),
    }
}

fn forwarded(watermark: Option<Watermark>) -> String {
    match watermark {
        None => "none".into(),
        Some(Watermark {
            timestamp,
            idle: false,
        }) => format!("forward wm {}", shown_time(timestamp)),
        Some(Watermark {
            timestamp,
            idle: true,
        }) => format!("forward idle {}", shown_time(timestamp)),
    }
}

fn listed(word: &str, inputs: &[usize]) -> String {
    inputs
        .iter()
        .fold(word.to_string(), |list, input| format!("{list} {input}"))
}

fn parse_time(word: &str) -> i64 {
    match word {
        "min" => i64::MIN,
        "max" => i64::MAX,
        number => number.parse().expect("a time"),
    }
}

fn shown_time(time: i64) -> String {
    match time {
        i64::MIN => "min".into(),
        i64::MAX => "max".into(),
        number => number.to_string(),
    }
}
