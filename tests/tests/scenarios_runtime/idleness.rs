//! Inputs that fall silent, inputs that flap, and inputs in their thousands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringway::batch::Row;
use ringway::clock::{Monotonic, ProcessingTime};
use ringway::connect::Collected;
use ringway::edge::{EdgeOptions, local};
use ringway::element::{StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::gate::{GateEvent, InputGate};
use ringway::job::{DataStream, Job};
use ringway::operator::{Emitter, Operator, Progress, Sink};
use ringway::operators::rows::AssignTimestamps;
use ringway::watermark::WatermarkStrategy;
use ringway_shm::Bell;
use ringway_tests::within::one_below;

use crate::parts::{Batch, How, Scripted, rows, subtasks};

/// A stream of rows at their times, whose watermark is the highest value so far.
fn timed(job: &Job, name: &str, script: &[(i64, i64)], idle_after_ms: u64) -> DataStream<i64> {
    let script: Vec<_> = script
        .iter()
        .map(|&(at, value)| (at, StreamElement::Data(rows([value]))))
        .collect();
    let source = job.source(name, move |_| Ok(Scripted::new(script.clone(), 900)));
    let strategy = WatermarkStrategy::monotonic().idle_after(idle_after_ms);
    source.parallelism(subtasks(1)).process("times", move |_| {
        let event_time = |row: &Row<i64>| Some(row.value);
        Ok(AssignTimestamps::new(event_time, strategy))
    })
}

#[test]
fn b41_a_silent_input_holds_the_watermark_back_until_it_is_idle_and_never_moves_it_back() {
    let job = Job::new("silent");
    let collected = Collected::<Batch>::new();
    // The times of the scenario by ten; A keeps talking, so that it is never idle.
    let a = [
        (0, 1_000),
        (100, 5_000),
        (200, 5_000),
        (300, 5_000),
        (400, 5_000),
        (500, 6_000),
    ];
    let b = [(0, 1_000), (400, 3_000), (400, 6_000)];
    let c = [(500, 7_000)];
    let [a, b, c] = [("a", &a[..]), ("b", &b[..]), ("c", &c[..])]
        .map(|(name, script)| timed(&job, name, script, 200));
    a.union(b)
        .union(c)
        .rebalance()
        .sink("collect", collected.sink());
    How::workers(2).run(job);
    let elements = collected.take();
    let position = |wanted: &StreamElement<Batch>| {
        elements
            .iter()
            .position(|e| e == wanted)
            .unwrap_or_else(|| panic!("{elements:#?}"))
    };
    let watermark = |time| StreamElement::Watermark(Watermark::active(time));
    let late = position(&StreamElement::Data(rows([3_000])));
    assert!(
        position(&watermark(5_000)) < late,
        "B and C were idle before B spoke again"
    );
    assert!(late < position(&watermark(6_000)));
    let active = elements.iter().filter_map(|element| match element {
        StreamElement::Watermark(watermark) if !watermark.idle => Some(watermark.timestamp),
        _ => None,
    });
    assert!(active.is_sorted(), "the watermark never steps back");
    assert_eq!(
        elements.last(),
        Some(&StreamElement::Watermark(Watermark::MAX))
    );
}

/// Counts the changes of idleness that pass.
struct CountsFlaps {
    idle: bool,
    flaps: Arc<AtomicU64>,
}

impl Operator<Batch, Batch> for CountsFlaps {
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
        if self.idle != watermark.idle {
            self.flaps.fetch_add(1, Ordering::SeqCst);
        }
        self.idle = watermark.idle;
        out.watermark(watermark);
        Ok(Progress::Done)
    }
}

/// Counts the watermarks that it gets, in a list with those of its like.
struct CountsWatermarks {
    count: u64,
    all: Arc<Mutex<Vec<u64>>>,
}

impl Sink<Batch> for CountsWatermarks {
    fn write(&mut self, _: Batch, _: ProcessingTime) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    fn on_watermark(&mut self, _: Watermark) -> Result<(), OperatorError> {
        self.count += 1;
        Ok(())
    }

    fn on_end(&mut self, _: ProcessingTime) -> Result<Progress, OperatorError> {
        self.all.lock().unwrap().push(self.count);
        Ok(Progress::Done)
    }
}

#[test]
fn b43_an_input_that_flaps_neither_floods_its_outputs_nor_delays_its_rows() {
    one_below(Duration::from_millis(100), "the latency", flap);
}

/// Runs a job whose input flaps, and returns below what 99 of 100 latencies were.
fn flap() -> Duration {
    let job = Job::new("flapping");
    let script: Vec<(i64, i64)> = (0..400).map(|n| (n * 2, n)).collect();
    let flaps = Arc::new(AtomicU64::new(0));
    let counts = Arc::new(Mutex::new(Vec::new()));
    let (counted, all) = (flaps.clone(), counts.clone());
    timed(&job, "flapping", &script, 1)
        .process("flaps", move |_| {
            Ok(CountsFlaps {
                idle: false,
                flaps: counted.clone(),
            })
        })
        .parallelism(subtasks(1))
        .rebalance()
        .sink_with("counts", move |_| {
            Ok(CountsWatermarks {
                count: 0,
                all: all.clone(),
            })
        });
    let report = How {
        parallelism: 100,
        ..How::workers(2)
    }
    .run(job);
    let flaps = flaps.load(Ordering::SeqCst);
    let counts = counts.lock().unwrap();
    let mut latency = ringway::task::Latency::default();
    report
        .tasks
        .iter()
        .for_each(|task| latency.merge(&task.latency));
    let p99 = latency.quantile(0.99);
    println!(
        "{flaps} changes, {} watermarks an output, p99 {p99:?}",
        counts[0]
    );
    assert_eq!(counts.len(), 100);
    // A row makes one watermark, a change of idleness at most two, the end one.
    assert!(
        counts.iter().all(|&count| count <= 400 + 2 * flaps + 1),
        "{counts:?}"
    );
    p99
}

/// Watermarks and rows a second through a gate of so many inputs.
fn gate_rate(inputs: usize, elements: usize) -> f64 {
    let each = elements / inputs;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..inputs)
        .map(|_| {
            let options = EdgeOptions::named("e").capacity(each + 1);
            let (mut sender, receiver) =
                local::open::<Batch>(options, Bell::thread(), Bell::thread());
            for n in 0..each as i64 {
                let element = if n % 2 == 0 {
                    StreamElement::Watermark(Watermark::active(n))
                } else {
                    StreamElement::Data(rows([n]))
                };
                sender.try_push(element).unwrap();
            }
            (sender, receiver)
        })
        .unzip();
    let mut gate = InputGate::new(receivers);
    let begun = Instant::now();
    while gate.poll(Monotonic::default()) != GateEvent::Empty {}
    let rate = elements as f64 / begun.elapsed().as_secs_f64();
    assert_eq!(gate.elements_taken(), elements as u64);
    drop(senders);
    rate
}

#[test]
fn b43_a_thousand_inputs_cost_an_element_little_more_than_ten() {
    let best = |inputs| {
        (0..3)
            .map(|_| gate_rate(inputs, 200_000))
            .fold(0.0, f64::max)
    };
    let (few, many) = (best(10), best(1_000));
    println!(
        "10 inputs {few:.0}/s, 1,000 inputs {many:.0}/s, ratio {:.2}",
        many / few
    );
    assert!(many * 4.0 >= few, "{many:.0} against {few:.0} a second");
}
