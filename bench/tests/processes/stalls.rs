//! A peer that stalls is seen in the figures for what it is: everything that was due meanwhile is late, by as
//! much as it was, and nothing is left out or counted twice.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rustix::process::{Pid, Signal};

use crate::children::{Running, is_there, signal};

/// Batches a second, and for how long.
const RATE: u64 = 1_000;
const SECONDS: u64 = 10;

/// When a run is half over, its peer is stopped, for so long.
const STALLED_AT: Duration = Duration::from_secs(SECONDS / 2);
const STALL: Duration = Duration::from_secs(1);

/// Ours and the baseline.
const CONTENDERS: usize = 2;

/// One at a time: each takes both CPUs.
static ALONE: Mutex<()> = Mutex::new(());

/// Scenario B73, over sockets.
#[test]
fn b73_a_peer_over_a_socket_that_stalls_makes_all_late_that_was_due() {
    stalled("socket");
}

/// Scenario B73, over shared memory.
#[test]
fn b73_a_peer_over_shared_memory_that_stalls_makes_all_late_that_was_due() {
    stalled("shared");
}

/// Of 10,000 batches, the 1,000 that are due while the peer is stopped wait from the whole stall down to
/// nothing: they are the tenth part that is latest.
fn stalled(transport: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let log = Log::new(transport);
    let mut running = load(transport, SECONDS, &log);
    let mut stalls = Vec::new();
    let mut child = None;
    while stalls.len() < CONTENDERS {
        let next = running.child(child);
        child = Some(next);
        // Runs that warm up are over sooner.
        if lives_for(next, STALLED_AT) {
            let began = Instant::now();
            signal(next, Signal::STOP);
            sleep(STALL);
            signal(next, Signal::CONT);
            stalls.push(began.elapsed());
        }
    }
    assert!(running.0.wait().unwrap().success());
    // There are more runs where the cores have moved meanwhile.
    let runs = read(&log);
    assert!(runs.len() >= CONTENDERS, "{runs:?}");
    for ((tag, latencies), stall) in runs.iter().zip(stalls) {
        assert_eq!(latencies.len(), RATE * SECONDS, "{tag}");
        let stall_ms = stall.as_secs_f64() * 1e3;
        // Of all, the share that is due during the stall is late; of these, each percentile is its share.
        let late = stall.as_secs_f64() / SECONDS as f64;
        let expected = |percentile: f64| stall_ms * (1.0 - (1.0 - percentile / 100.0) / late);
        let near = |percentile: f64| {
            let ms = percentile_ms(latencies, percentile);
            let expected = expected(percentile);
            let difference = (ms - expected).abs();
            assert!(
                difference <= stall_ms * 0.05,
                "{tag}: p{percentile} is {ms} ms, and should be about {expected} ms"
            );
        };
        [100.0, 99.0, 95.0].into_iter().for_each(near);
        let p90 = percentile_ms(latencies, 90.0);
        assert!(
            p90 < 100.0,
            "{tag}: p90 is {p90} ms, and hardly any of it was due in the stall"
        );
    }
}

/// The same without a stall. That p99 is below 5 ms is a promise for a machine of its own: where
/// others take the CPUs for tens of milliseconds, that is what is measured. So it is the half that
/// is earliest which is looked at here.
#[test]
fn without_a_stall_half_of_all_are_back_within_5_ms() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let log = Log::new("no-stall");
    let mut running = load("socket", 2, &log);
    assert!(running.0.wait().unwrap().success());
    for (tag, latencies) in read(&log) {
        assert_eq!(latencies.len(), RATE * 2, "{tag}");
        let p50 = percentile_ms(&latencies, 50.0);
        assert!(p50 < 5.0, "{tag}: p50 is {p50} ms");
    }
}

/// A file that is gone afterwards.
struct Log(PathBuf);

impl Log {
    fn new(name: &str) -> Self {
        let name = format!("ringway-bench-{}-{name}.hlog", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Where the run failed there is none.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn load(transport: &str, seconds: u64, log: &Log) -> Running {
    let log = log.0.display();
    Running::start(&format!(
        "load --transport {transport} --only load/{transport}/park/{RATE} --exact --runs 1 \
         --seconds {seconds} --hdr-log {log}"
    ))
}

fn lives_for(process: Pid, time: Duration) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if !is_there(process) {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

fn percentile_ms(latencies: &Histogram<u64>, percentile: f64) -> f64 {
    latencies.value_at_percentile(percentile) as f64 / 1e6
}

/// The runs in a log, each with its tag, in the order in which they began.
fn read(log: &Log) -> Vec<(String, Histogram<u64>)> {
    let text = std::fs::read(&log.0).unwrap();
    let entries = IntervalLogIterator::new(&text).map(Result::unwrap);
    let runs = entries.filter_map(|entry| match entry {
        LogEntry::Interval(interval) => Some(interval),
        _ => None,
    });
    runs.map(|run| {
        let encoded = from_base64(run.encoded_histogram().as_bytes());
        let latencies = Deserializer::new().deserialize(&mut &encoded[..]);
        (run.tag().unwrap().as_str().to_owned(), latencies.unwrap())
    })
    .collect()
}

fn from_base64(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut bits_len) = (0_u32, 0);
    for digit in text {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        bits_len += 6;
        if bits_len >= 8 {
            bits_len -= 8;
            bytes.push((bits >> bits_len) as u8);
        }
    }
    bytes
}
