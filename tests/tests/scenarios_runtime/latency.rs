//! Nothing waits on a timer.

use std::time::Duration;

use ringway::connect::Collected;
use ringway::element::StreamElement;
use ringway::job::Job;
use ringway::worker::IdlePolicy;
use ringway_tests::within::one_below;

use crate::parts::{Batch, How, Scripted, rows};

/// Four stages on two workers; a row every 50 ms, and nothing else.
fn pipeline(script: Scripted, collected: &Collected<Batch>) -> Job {
    let job = Job::new("pipeline");
    job.source("scripted", move |_| Ok(script.clone()))
        .rebalance()
        .map(|n: i64| n + 1)
        .rebalance()
        .map(|n: i64| n + 1)
        .rebalance()
        .sink("collect", collected.sink());
    job
}

/// The median of the latencies of ten rows.
fn median(idle: IdlePolicy) -> Duration {
    let collected = Collected::new();
    let script = (0..10).map(|n| (n * 50, StreamElement::Data(rows([n]))));
    let job = pipeline(Scripted::new(script, 500), &collected);
    let how = How {
        idle,
        ..How::workers(2)
    };
    let report = how.run(job);
    let sink = report.tasks.iter().find(|task| task.sink_rows > 0).unwrap();
    let median = sink.latency.quantile(0.5);
    println!("{idle}: p50 {median:?}, max {:?}", sink.latency.max());
    assert_eq!(sink.latency.count(), 10);
    median
}

#[test]
fn d16_a_row_through_an_idle_pipeline_arrives_though_nothing_follows() {
    for idle in [IdlePolicy::Adaptive, IdlePolicy::Park, IdlePolicy::Spin] {
        let what = format!("the median with {idle}");
        one_below(Duration::from_millis(10), &what, || median(idle));
    }
}
