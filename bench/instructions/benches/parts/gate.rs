//! What a task does with the control elements of its inputs.

use std::hint::black_box;

use gungraun::prelude::*;
use ringway::align::Alignment;
use ringway::batch::{Row, Rows};
use ringway::clock::Monotonic;
use ringway::edge::{Bell, EdgeOptions, Sender, local};
use ringway::element::{Barrier, StreamElement, Watermark};
use ringway::gate::{GateEvent, InputGate};
use ringway::watermark::WatermarkMerge;

const INPUTS: usize = 4;

/// How often each input says something.
const ROUNDS: u64 = 16;

#[library_benchmark]
#[bench::barriers_of_4_inputs(Alignment::new(INPUTS))]
pub(crate) fn align(mut alignment: Alignment) -> (Alignment, usize) {
    let mut facts = 0;
    for id in 1..=ROUNDS {
        for input in 0..INPUTS {
            let now = Monotonic::default();
            facts += alignment
                .on_barrier(input, black_box(Barrier::aligned(id)), now)
                .len();
        }
    }
    // The barrier goes on, and the inputs that waited for the last are released.
    assert_eq!(facts, ROUNDS as usize * INPUTS);
    (alignment, facts)
}

#[library_benchmark]
#[bench::inputs_4(WatermarkMerge::new(INPUTS))]
#[bench::inputs_256(WatermarkMerge::new(256))]
pub(crate) fn watermark_merge(mut merge: WatermarkMerge) -> (WatermarkMerge, usize) {
    let mut forwarded = 0;
    for round in 0..ROUNDS as i64 {
        for input in 0..merge.input_count() {
            let watermark = Watermark::active(black_box(round));
            forwarded += usize::from(merge.on_watermark(input, watermark).is_some());
        }
    }
    assert_eq!(forwarded, ROUNDS as usize);
    (merge, forwarded)
}

/// A gate over edges that hold batches, watermarks and a barrier, and the other ends.
fn gate() -> (InputGate<Rows<i64>>, Vec<Sender<Rows<i64>>>) {
    let open = |_| local::open(EdgeOptions::named("guard"), Bell::thread(), Bell::thread());
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..INPUTS).map(open).unzip();
    for round in 0..ROUNDS {
        for sender in &mut senders {
            let time = round as i64;
            let rows = Rows::from_iter([Row::at(time, time)]);
            for element in [
                StreamElement::Data(rows),
                StreamElement::Watermark(Watermark::active(time)),
                StreamElement::Barrier(Barrier::aligned(round + 1)),
            ] {
                assert!(sender.try_push(element).is_ok(), "an edge holds more");
            }
        }
    }
    (InputGate::new(receivers), senders)
}

#[library_benchmark]
#[bench::inputs_4(gate())]
pub(crate) fn gate_step(
    (mut gate, senders): (InputGate<Rows<i64>>, Vec<Sender<Rows<i64>>>),
) -> (InputGate<Rows<i64>>, Vec<Sender<Rows<i64>>>) {
    let now = Monotonic::default();
    let (mut batches, mut barriers) = (0, 0);
    loop {
        match black_box(gate.poll(now)) {
            GateEvent::Data { .. } => batches += 1,
            GateEvent::Barrier { .. } => barriers += 1,
            GateEvent::Empty => break,
            _ => {}
        }
    }
    assert_eq!(batches, ROUNDS as usize * INPUTS);
    assert_eq!(barriers, ROUNDS as usize);
    (gate, senders)
}
