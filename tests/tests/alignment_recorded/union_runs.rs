//! Whole runs of a union: what comes out, in which order, and what stays in the inputs.

use ringway::element::{Barrier, Drain, Watermark};

use super::recorded;
use super::union::{Item, Union};

/// One run: inputs, output, what is left, and the defect that the recorded run shows.
struct Run {
    inputs: [&'static [Item]; 2],
    out: &'static str,
    left: [usize; 2],
    defect: Option<&'static str>,
}

const B1: Item = Item::Barrier(Barrier::aligned(1));
const B2: Item = Item::Barrier(Barrier::aligned(2));
const B1_UNALIGNED: Item = Item::Barrier(Barrier::unaligned(1));
const TERMINAL: Item = Item::Barrier(Barrier::terminal());

/// In the order of the recorded runs.
const RUNS: [Run; 10] = [
    // One input brings the barrier, the other ends without it.
    Run {
        inputs: [
            &[Item::Data(1), B1, Item::Data(2)],
            &[Item::Data(10), Item::End],
        ],
        out: "D1 D10 B(1) D2",
        left: [0, 0],
        defect: Some("D3: the barrier is swallowed"),
    },
    // Both bring it.
    Run {
        inputs: [
            &[Item::Data(1), B1, Item::Data(2), Item::End],
            &[Item::Data(10), B1, Item::Data(11), Item::End],
        ],
        out: "D1 D10 B(1) D2 D11 WM(max)",
        left: [0, 0],
        defect: None,
    },
    // Both end with a terminal barrier.
    Run {
        inputs: [
            &[Item::Data(1), TERMINAL, Item::End],
            &[Item::Data(10), TERMINAL, Item::End],
        ],
        out: "D1 D10 B(18446744073709551615,terminal) WM(max)",
        left: [0, 0],
        defect: Some("D10: the terminal flag is lost"),
    },
    // One ends with a terminal barrier, the other without.
    Run {
        inputs: [
            &[Item::Data(1), TERMINAL, Item::End],
            &[Item::Data(10), Item::End],
        ],
        out: "D1 D10 B(18446744073709551615,terminal) WM(max)",
        left: [0, 0],
        defect: Some("D3, D10: the terminal barrier is swallowed"),
    },
    // An unaligned barrier goes ahead of the other input.
    Run {
        inputs: [
            &[B1_UNALIGNED, Item::Data(1), Item::End],
            &[Item::Data(10), Item::Data(11), B1_UNALIGNED, Item::End],
        ],
        out: "B(1,unaligned) D10 D1 D11 WM(max)",
        left: [0, 0],
        defect: None,
    },
    // Ids out of step. Input 1 waits for barrier 2, which input 0 may still bring.
    Run {
        inputs: [&[B1, Item::Data(1)], &[B2, Item::Data(11)]],
        out: "D1",
        left: [0, 1],
        defect: Some("D18: both inputs are blocked for ever"),
    },
    // Input 1 leaves out barrier 1.
    Run {
        inputs: [
            &[B1, Item::Data(1), B2, Item::Data(2)],
            &[B2, Item::Data(11)],
        ],
        out: "D1 B(2) D11 D2",
        left: [0, 0],
        defect: Some("D18: both inputs are blocked for ever"),
    },
    // A duplicate after the barrier went on.
    Run {
        inputs: [
            &[B1, Item::Data(1), B1, Item::Data(2)],
            &[B1, Item::Data(10)],
        ],
        out: "B(1) D1 D10 D2",
        left: [0, 0],
        defect: Some("D18: a duplicate blocks its input for ever"),
    },
    // A drain marker passes at once.
    Run {
        inputs: [
            &[
                Item::Data(1),
                Item::Drain(Drain {
                    subtask: 3,
                    target_parallelism: 8,
                }),
                Item::Data(2),
                Item::End,
            ],
            &[Item::Data(10), Item::End],
        ],
        out: "D1 D10 DRAIN(3,8) D2 WM(max)",
        left: [0, 0],
        defect: None,
    },
    // The end of an input releases the other's watermark, which then is idle alone.
    Run {
        inputs: [
            &[Item::Watermark(Watermark::active(50)), Item::End],
            &[
                Item::Watermark(Watermark::active(70)),
                Item::Watermark(Watermark::idle(70)),
            ],
        ],
        out: "WM(50) WM(70) IDLE(70)",
        left: [0, 0],
        defect: None,
    },
];

#[test]
fn a_union_forwards_each_element_once_and_never_blocks_on_what_cannot_come() {
    for run in &RUNS {
        let (out, left) = Union::run(&run.inputs);
        assert_eq!(
            (out.as_str(), left.as_slice()),
            (run.out, run.left.as_slice())
        );
    }
    if let Some(text) = recorded("union_probe.txt") {
        compare(&text);
    }
}

/// Compares our runs with the recorded ones.
fn compare(text: &str) {
    let sections: Vec<&str> = text.split("##").skip(1).collect();
    assert_eq!(sections.len(), RUNS.len());
    for (section, run) in sections.iter().zip(&RUNS) {
        let field = |name: &str| {
            let line = section
                .lines()
                .find_map(|line| line.trim().strip_prefix(name));
            line.expect("each run has its fields").trim().to_string()
        };
        let (out, left) = (field("out:"), field("left in inputs:"));
        let same = out == run.out && left == format!("{} {}", run.left[0], run.left[1]);
        assert_eq!(
            same,
            run.defect.is_none(),
            "recorded {out}, ours {}",
            run.out
        );
        if let Some(defect) = run.defect {
            println!(
                "recorded \"{out}\", left {left}; ours \"{}\" ({defect})",
                run.out
            );
        }
    }
}
