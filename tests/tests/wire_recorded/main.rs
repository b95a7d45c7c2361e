//! Recorded bytes of the reference implementation, and its answers to odd ones.
//!
//! The examples of the documentation and our own answers always run. Where `RINGWAY_VECTORS`
//! names a folder with recordings, every recorded stream deframes to what its receiver
//! delivered, our control frames have the same bytes and our grants the same sum; and every
//! recorded answer that frames alone decide is ours too, except where the reference has a
//! defect: then the defect is named here.

mod answers;
mod edges;
mod play;
mod runs;

use std::time::Duration;

use ringway_netio::frame::{Control, Frame, HEADER_BYTES, Kind, encode};
use ringway_netio::session::Negotiation;
use ringway_tests::recordings::{read, recordings};

use crate::play::{granted, play};

/// How many streams were recorded at least.
const STREAMS_MIN: usize = 17;

const NOW: Duration = Duration::ZERO;

/// Whole frames and what they mean, as the documentation gives them.
const EXAMPLES: &[(&str, &str)] = &[
    ("00000009 01 00000000000003e8", "WM 1000"),
    ("00000009 01 ffffffffffffffff", "WM -1"),
    ("00000009 01 8000000000000000", "WM -9223372036854775808"),
    ("00000009 01 7fffffffffffffff", "WM 9223372036854775807"),
    ("00000009 06 00000000000005dc", "IDLE 1500"),
    ("00000009 06 8000000000000000", "IDLE -9223372036854775808"),
    (
        "0000000a 02 0000000000000001 00",
        "BARRIER id=1 terminal=0 mode=0",
    ),
    (
        "0000000a 02 0000000000000002 01",
        "BARRIER id=2 terminal=0 mode=1",
    ),
    (
        "0000000a 02 ffffffffffffffff 00",
        "BARRIER id=18446744073709551615 terminal=0 mode=0",
    ),
    (
        "0000000a 05 ffffffffffffffff 00",
        "BARRIER id=18446744073709551615 terminal=1 mode=0",
    ),
    (
        "0000000a 05 0000000000000009 01",
        "BARRIER id=9 terminal=1 mode=1",
    ),
    (
        "00000009 08 00000003 00000008",
        "DRAIN subtask=3 target_parallelism=8",
    ),
    (
        "00000009 08 ffffffff 00000000",
        "DRAIN subtask=4294967295 target_parallelism=0",
    ),
    ("00000001 03", "CLOSE"),
    ("00000005 04 00000800", "CREDIT 2048"),
];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).expect("hex"))
        .collect()
}

fn named(control: &Control) -> String {
    match *control {
        Control::Watermark { timestamp_ms } => format!("WM {timestamp_ms}"),
        Control::WatermarkIdle { timestamp_ms } => format!("IDLE {timestamp_ms}"),
        Control::Barrier { id, mode, terminal } => {
            format!(
                "BARRIER id={id} terminal={} mode={mode}",
                u8::from(terminal)
            )
        }
        Control::Drain {
            subtask,
            target_parallelism,
        } => format!("DRAIN subtask={subtask} target_parallelism={target_parallelism}"),
    }
}

#[test]
fn the_examples_of_the_documentation_read_and_write_as_they_say() {
    for (example, meaning) in EXAMPLES {
        let bytes = hex(example);
        let (kind, body) = (Kind(bytes[4]), &bytes[HEADER_BYTES..]);
        let mut written = Vec::new();
        let read = match Frame::parse(kind, body).expect(example) {
            Frame::Control { control, .. } => {
                encode::control(&mut written, &control);
                named(&control)
            }
            Frame::Close { .. } => {
                encode::close(&mut written);
                "CLOSE".into()
            }
            Frame::CreditUpdate { records, .. } => {
                encode::credit_update(&mut written, records, None);
                format!("CREDIT {records}")
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(read, *meaning);
        assert_eq!(written, bytes, "{example}");
    }
    let mut header = Vec::new();
    encode::arrow_batch_header(&mut header, 456).expect("a short batch");
    assert_eq!(header, hex("000001c9 07"));
}

/// The lines of a recorded delivery: elements, rows of batches, whether it closed properly.
fn expected(text: &str) -> (Vec<String>, Vec<u32>) {
    let mut elements = Vec::new();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("END")) {
        match line.strip_prefix("DATA n=") {
            None => elements.push(line.trim_end().to_string()),
            Some(rest) => {
                let count = rest.split(' ').next().expect("a number");
                rows.push(count.parse().expect("a number"));
                elements.push("DATA".into());
            }
        }
    }
    (elements, rows)
}

#[test]
fn recorded_streams_are_delivered_as_they_were_and_grant_the_same() {
    let Some(folder) = recordings("wire") else {
        return;
    };
    let mut streams = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        let Some(name) = name.strip_suffix(".expected.txt") else {
            continue;
        };
        streams += 1;
        let text = String::from_utf8(read(&folder.join(format!("{name}.expected.txt"))));
        let (elements, rows) = expected(&text.expect("a text"));
        let bytes = read(&folder.join(format!("{name}.bin")));
        let reverse = read(&folder.join(format!("{name}.reverse.bin")));
        for negotiation in [Negotiation::Off, Negotiation::Prefer] {
            let played = play(&bytes, negotiation, &rows);
            assert_eq!(played.delivered, elements, "{name}");
            assert_eq!(played.granted, granted(&reverse), "{name}");
            let all: u64 = rows.iter().map(|rows| u64::from(*rows)).sum();
            assert_eq!(played.granted, 2048 + all, "{name}");
            // The reference calls these ends clean (D16).
            let is_cut = name.contains("eof_without_close") || name.contains("crash");
            assert_eq!(played.end, if is_cut { "lost" } else { "none" }, "{name}");
        }
        check_written(&bytes, name);
    }
    assert!(streams >= STREAMS_MIN, "{streams} recordings");
}

/// Our control frames have the recorded bytes.
fn check_written(bytes: &[u8], name: &str) {
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..].first_chunk().copied().expect("a length");
        let end = at + 4 + u32::from_be_bytes(length) as usize;
        let frame = &bytes[at..end];
        let mut written = Vec::new();
        match Frame::parse(Kind(frame[4]), &frame[HEADER_BYTES..]).expect("a proper frame") {
            Frame::Control { control, .. } => encode::control(&mut written, &control),
            Frame::Close { .. } => encode::close(&mut written),
            Frame::Unknown(Kind::ARROW_BATCH) => {
                let body = &frame[HEADER_BYTES..];
                encode::arrow_batch_header(&mut written, body.len()).expect("a short frame");
                written.extend_from_slice(body);
            }
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(written, frame, "{name} at byte {at}");
        at = end;
    }
}
