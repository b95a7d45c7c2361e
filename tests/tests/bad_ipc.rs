//! Arrow IPC that nobody vouches for. Goal: whatever a peer or a file says, the answer is the
//! right rows or an error, without a panic, and within bounded memory. Method: the files of
//! `data/bad-ipc`, each broken in one way, with the answer that its manifest gives; and good
//! files, cut at every byte, with every byte changed, and with bytes changed at random.

use std::fs;
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use ringway::wire::ipc::{IpcError, IpcStreamReader};

/// What a stream gave: its batches, and how it ended.
struct Outcome {
    batches: Vec<RecordBatch>,
    end: Result<(), IpcError>,
}

impl Outcome {
    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

fn read(bytes: &[u8]) -> Outcome {
    let mut batches = Vec::new();
    let end = read_into(bytes, &mut batches);
    if let Err(IpcError::Panicked(reason)) = &end {
        panic!("the library panicked: {reason}");
    }
    Outcome { batches, end }
}

fn read_into(bytes: &[u8], batches: &mut Vec<RecordBatch>) -> Result<(), IpcError> {
    let mut reader = IpcStreamReader::new(bytes)?;
    while let Some(batch) = reader.next_batch()? {
        batches.push(batch);
    }
    Ok(())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad-ipc")
}

struct Case {
    name: String,
    expect: String,
    rows: Option<usize>,
    values: Option<serde_json::Value>,
    bytes: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let manifest = fs::read(folder().join("manifest.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_slice(&manifest).unwrap();
    let case = |entry: &serde_json::Value| {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        Case {
            name: text("name"),
            expect: text("expect"),
            rows: entry["rows"].as_u64().map(|rows| rows as usize),
            values: entry.get("values").cloned(),
            bytes: fs::read(folder().join(text("file"))).unwrap(),
        }
    };
    let cases: Vec<_> = manifest.iter().map(case).collect();
    assert!(cases.len() > 100, "the manifest lists the files");
    cases
}

/// A value as the manifest writes it.
fn shown(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "None".to_owned();
    }
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8 => format!("'{}'", array.as_string::<i32>().value(row)),
        DataType::List(_) => all_shown(&*array.as_list::<i32>().value(row)),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            shown(dictionary.values(), key)
        }
        other => panic!("the manifest has no values of {other}"),
    }
}

fn all_shown(array: &dyn Array) -> String {
    let values: Vec<_> = (0..array.len()).map(|row| shown(array, row)).collect();
    format!("[{}]", values.join(", "))
}

fn values_of(batches: &[RecordBatch]) -> serde_json::Value {
    let batch = |batch: &RecordBatch| -> Vec<String> {
        batch
            .columns()
            .iter()
            .map(|column| all_shown(column))
            .collect()
    };
    batches.iter().map(batch).collect()
}

#[test]
fn every_broken_file_gets_the_answer_that_is_due() {
    let mut wrong = Vec::new();
    for case in cases() {
        let outcome = read(&case.bytes);
        let accepted = outcome.end.is_ok();
        let is_right = match case.expect.as_str() {
            "accept" => accepted,
            "reject" => !accepted,
            "either" => true,
            other => panic!("{}: expects {other}", case.name),
        };
        let rows = case.rows.unwrap_or(outcome.rows());
        if !is_right || accepted && outcome.rows() != rows {
            let (name, rows, end) = (&case.name, outcome.rows(), &outcome.end);
            wrong.push(format!("{name}: {rows} rows, {end:?}"));
        }
        if let (true, Some(values)) = (accepted, &case.values) {
            // All batches are kept to the end, so that a later dictionary could change them.
            assert_eq!(&values_of(&outcome.batches), values, "{}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn memory_stays_within_the_stated_limits() {
    for name in [
        "zstd_bomb_1GiB",
        "lz4_bomb_liar",
        "bomb_many_buffers",
        "lz4_claim_2p60",
    ] {
        let bytes = fs::read(folder().join(format!("{name}.arrows"))).unwrap();
        let _ = read(&bytes);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let peak_kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak_kib < 256 << 10, "{peak}");
}

#[test]
fn a_wrong_value_is_never_taken_for_a_right_one() {
    for (name, rows) in [("nulls_lie_zero", 2), ("validity_missing_with_nulls", 3)] {
        let bytes = fs::read(folder().join(format!("{name}.arrows"))).unwrap();
        let outcome = read(&bytes);
        assert!(outcome.end.is_err(), "{name}");
        assert_ne!(outcome.rows(), rows, "{name}");
    }
}

/// Files short enough to be changed in every way.
fn seeds() -> Vec<Case> {
    let mut cases = cases();
    cases.retain(|case| case.bytes.len() < 2000);
    cases
}

#[test]
fn a_stream_that_is_cut_anywhere_is_an_error_or_ends_between_two_messages() {
    for case in seeds().iter().filter(|case| case.name.starts_with("ok_")) {
        let whole = read(&case.bytes);
        for length in 0..case.bytes.len() {
            let outcome = read(&case.bytes[..length]);
            let good = &whole.batches[..outcome.batches.len()];
            assert_eq!(outcome.batches, good, "{} cut at {length}", case.name);
            if length == 0 {
                assert!(outcome.end.is_err(), "nothing is no stream");
            }
        }
    }
}

#[test]
fn every_byte_may_be_changed_without_a_panic() {
    for case in seeds() {
        for at in 0..case.bytes.len().min(900) {
            for flip in [0xff, 0x80, 0x01] {
                let mut bytes = case.bytes.clone();
                bytes[at] ^= flip;
                let _ = read(&bytes);
            }
        }
    }
}

#[test]
fn random_changes_never_panic() {
    let seed: u64 = match std::env::var("RINGWAY_SEED") {
        Ok(seed) => seed.parse().expect("RINGWAY_SEED is a number"),
        Err(_) => 1,
    };
    println!("RINGWAY_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut next = |below: usize| (random.next_u64() % below as u64) as usize;
    let seeds = seeds();
    for _ in 0..20_000 {
        let mut bytes = seeds[next(seeds.len())].bytes.clone();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..=next(6) {
            let at = next(bytes.len());
            // Small numbers are the ones that make sense to a parser.
            let value = [next(256), next(9), 0, 255][next(4)];
            bytes[at] = value as u8;
        }
        let _ = read(&bytes);
    }
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..next(200)).map(|_| next(256) as u8).collect();
        assert!(read(&bytes).end.is_err());
    }
}
