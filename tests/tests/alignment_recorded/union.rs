//! A union of two inputs as plainly as it can be: one element of each input in turn.

use std::collections::VecDeque;

use ringway::align::{AlignFact, Alignment};
use ringway::clock::Monotonic;
use ringway::element::{Barrier, Drain, Watermark};
use ringway::watermark::WatermarkMerge;

/// What an input brings. An input that does not end with `End` stays open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    Data(i64),
    Watermark(Watermark),
    Barrier(Barrier),
    Drain(Drain),
    End,
}

/// A union, its inputs and what it put out so far.
pub(crate) struct Union {
    align: Alignment,
    merge: WatermarkMerge,
    inputs: Vec<VecDeque<Item>>,
    out: Vec<String>,
}

impl Union {
    /// Runs a union until it makes no progress. Returns what it put out, and how many
    /// elements are left in each input.
    pub(crate) fn run(inputs: &[&[Item]]) -> (String, Vec<usize>) {
        let mut union = Self {
            align: Alignment::new(inputs.len()),
            merge: WatermarkMerge::new(inputs.len()),
            inputs: inputs
                .iter()
                .map(|items| items.iter().copied().collect())
                .collect(),
            out: Vec::new(),
        };
        while (0..inputs.len()).fold(false, |progress, input| union.take(input) | progress) {}
        (
            union.out.join(" "),
            union.inputs.iter().map(VecDeque::len).collect(),
        )
    }

    fn take(&mut self, input: usize) -> bool {
        // The end of an input that waits is seen even so.
        let ends = matches!(self.inputs[input].front(), Some(Item::End));
        if self.align.is_paused(input) && !ends {
            return false;
        }
        let Some(item) = self.inputs[input].pop_front() else {
            return false;
        };
        match item {
            Item::Data(value) => self.out.push(format!("D{value}")),
            Item::Drain(drain) => {
                self.out.push(format!(
                    "DRAIN({},{})",
                    drain.subtask, drain.target_parallelism
                ));
            }
            Item::Watermark(watermark) => {
                let merged = self.merge.on_watermark(input, watermark);
                self.put_watermark(merged);
            }
            Item::Barrier(barrier) => {
                let facts = self.align.on_barrier(input, barrier, Monotonic::default());
                self.put_barriers(&facts);
            }
            Item::End => {
                let facts = self.align.on_input_closed(input);
                self.put_barriers(&facts);
                self.merge.close(input);
                let merged = self.merge.refresh();
                self.put_watermark(merged);
            }
        }
        true
    }

    fn put_watermark(&mut self, merged: Option<Watermark>) {
        self.out.extend(merged.map(|watermark| match watermark {
            Watermark::MAX => "WM(max)".to_string(),
            Watermark {
                timestamp,
                idle: false,
            } => format!("WM({timestamp})"),
            Watermark {
                timestamp,
                idle: true,
            } => format!("IDLE({timestamp})"),
        }));
    }

    fn put_barriers(&mut self, facts: &[AlignFact]) {
        for fact in facts {
            if let AlignFact::Forward { barrier, .. } = fact {
                let terminal = if barrier.terminal { ",terminal" } else { "" };
                let mode = if barrier.mode.is_unaligned() {
                    ",unaligned"
                } else {
                    ""
                };
                self.out.push(format!("B({}{terminal}{mode})", barrier.id));
            }
        }
    }
}
