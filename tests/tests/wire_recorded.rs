//! Recorded bytes of the reference implementation, and its answers to odd ones.
//!
//! The examples of the documentation and our own answers always run. Where `RINGWAY_VECTORS`
//! names a folder with recordings, every recorded stream deframes to what its receiver
//! delivered, our control frames have the same bytes and our grants the same sum; and every
//! recorded answer that frames alone decide is ours too, except where the reference has a
//! defect: then the defect is named here.

use std::path::PathBuf;
use std::time::Duration;

use ringway_netio::frame::{
    Control, Deframed, Deframer, Direction, FRAME_BYTES_MAX, Frame, FrameError, HEADER_BYTES, Kind,
    encode,
};
use ringway_netio::session::{
    Intake, Negotiation, Received, ReceiverOptions, ReceiverSession, SessionError,
};

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

/// Streams to a receiver by the names of the recorded answers, and what ours makes of them;
/// a defect of the reference explains why it recorded something else.
const ANSWERS: &[(&str, &str, &str, Option<&str>)] = &[
    (
        "zero-length frame",
        "00000000",
        "WM 77 | END frame length corrupt",
        None,
    ),
    (
        "length 256MiB+1",
        "10000001",
        "WM 77 | END frame length corrupt",
        None,
    ),
    (
        "length 0xffffffff",
        "-ffffffff",
        "END frame length corrupt",
        None,
    ),
    (
        "length 256MiB exactly then EOF",
        "10000000 07",
        "WM 77 | END frame truncated mid-body",
        None,
    ),
    ("EOF right after connect", "-", "END lost", Some("D16")),
    (
        "EOF after 1 header byte",
        "00",
        "WM 77 | END frame truncated mid-body",
        Some("D16"),
    ),
    (
        "EOF after 3 header bytes",
        "000000",
        "WM 77 | END frame truncated mid-body",
        Some("D16"),
    ),
    (
        "EOF after header",
        "00000009 07",
        "WM 77 | END frame truncated mid-body",
        None,
    ),
    (
        "EOF mid body",
        "00000009 07 0102",
        "WM 77 | END frame truncated mid-body",
        None,
    ),
    (
        "kind 0 legacy Data (empty)",
        "00000001 00",
        "WM 77 | END legacy Data frame kind",
        None,
    ),
    (
        "kind 0 legacy Data (1 record)",
        "00000012 00 00000001 00 0000000000000000 00000000",
        "WM 77 | END legacy Data frame kind",
        None,
    ),
    (
        "unknown kind 9 then wm",
        "-00000002 09 01 WM CLOSE",
        "WM 77 | END none",
        None,
    ),
    (
        "unknown kind 100 then wm",
        "-00000001 64 WM CLOSE",
        "WM 77 | END none",
        None,
    ),
    (
        "unknown kind 255 then wm",
        "-00000003 ff 0102 WM CLOSE",
        "WM 77 | END none",
        None,
    ),
    (
        "CreditUpdate sent to source",
        "-00000005 04 00000005 WM CLOSE",
        "WM 77 | END none",
        None,
    ),
    (
        "CreditUpdate short",
        "-00000002 04 01 WM CLOSE",
        "WM 77 | END none",
        None,
    ),
    (
        "watermark + 5 trailing bytes",
        "-0000000e 01 0000000000000005 0102030405 WM CLOSE",
        "WM 5 | WM 77 | END none",
        None,
    ),
    (
        "watermark SHORT (payload 0)",
        "-00000001 01 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    (
        "watermark SHORT (payload 4)",
        "-00000005 01 00000001 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    (
        "idle SHORT (payload 4)",
        "-00000005 06 00000001 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    (
        "barrier 8 bytes (no mode)",
        "-00000009 02 0000000000000005 WM CLOSE",
        "BARRIER id=5 terminal=0 mode=0 | WM 77 | END none",
        None,
    ),
    (
        "barrier mode=1",
        "-0000000a 02 0000000000000005 01 CLOSE",
        "BARRIER id=5 terminal=0 mode=1 | END none",
        None,
    ),
    (
        "barrier mode=2",
        "-0000000a 02 0000000000000005 02 CLOSE",
        "BARRIER id=5 terminal=0 mode=2 | END none",
        None,
    ),
    (
        "barrier mode=255",
        "-0000000a 02 0000000000000005 ff CLOSE",
        "BARRIER id=5 terminal=0 mode=255 | END none",
        None,
    ),
    (
        "barrier mode=1 + trailing",
        "-0000000d 02 0000000000000005 01 aabbcc WM CLOSE",
        "BARRIER id=5 terminal=0 mode=1 | WM 77 | END none",
        None,
    ),
    (
        "barrier SHORT (payload 3)",
        "-00000004 02 010203 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    (
        "terminal 8 bytes",
        "-00000009 05 ffffffffffffffff CLOSE",
        "BARRIER id=18446744073709551615 terminal=1 mode=0 | END none",
        None,
    ),
    (
        "terminal SHORT (payload 0)",
        "-00000001 05 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    (
        "drain + trailing",
        "-0000000b 08 00000003 00000008 0102 CLOSE",
        "DRAIN subtask=3 target_parallelism=8 | END none",
        None,
    ),
    (
        "drain SHORT (payload 4)",
        "-00000005 08 00000003 WM CLOSE",
        "END short",
        Some("D1"),
    ),
    ("close + payload", "-00000004 03 010203", "END none", None),
    (
        "close then more frames",
        "CLOSE 00000000",
        "WM 77 | END none",
        None,
    ),
    ("close twice", "-CLOSE CLOSE", "END none", None),
    (
        "ArrowBatch 5000 rows in one frame (over window)",
        "-00000005 07 00001388 CLOSE",
        "END window",
        Some("D14"),
    ),
];

/// A stream of the table: hex, `WM` and `CLOSE`; a watermark of 77 comes first unless it
/// begins with a dash.
fn stream(text: &str) -> Vec<u8> {
    let text = match text.strip_prefix('-') {
        Some(rest) => rest.to_string(),
        None => format!("WM {text}"),
    };
    let text = text.replace("WM", "00000009 01 000000000000004d");
    hex(&text.replace("CLOSE", "00000001 03"))
}

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

/// What a session delivered, and what it sent back.
struct Played {
    delivered: Vec<String>,
    end: String,
    granted: u64,
}

/// Plays a stream to a receiver whose consumer takes all at once. The rows of batches are
/// those given, or else the first four bytes of a body.
fn play(bytes: &[u8], negotiation: Negotiation, rows: &[u32]) -> Played {
    let options = ReceiverOptions {
        negotiation,
        window_bytes: u64::from(FRAME_BYTES_MAX),
        ..ReceiverOptions::default()
    };
    let mut session: ReceiverSession<Vec<u8>> = ReceiverSession::new(options, NOW);
    let mut rows = rows.iter();
    let mut delivered = Vec::new();
    let mut sent = Vec::new();
    session.poll_transmit(&mut sent);
    let mut input = bytes;
    loop {
        match session.handle_input(NOW, &mut input) {
            Intake::Body(wanted) => {
                let body = session.take_body(NOW, &mut input).to_vec();
                if body.len() < wanted.bytes {
                    break;
                }
                session.handle_body(body, None);
            }
            Intake::More | Intake::Ended => break,
            Intake::Full => {}
        }
        take(&mut session, &mut rows, &mut delivered);
        session.poll_transmit(&mut sent);
    }
    take(&mut session, &mut rows, &mut delivered);
    session.poll_transmit(&mut sent);
    session.handle_eof();
    Played {
        delivered,
        end: session.poll_end().map_or("open".into(), |end| match end {
            Ok(_) => "none".into(),
            Err(error) => reason(error).to_string(),
        }),
        granted: granted(&sent),
    }
}

fn take(
    session: &mut ReceiverSession<Vec<u8>>,
    rows: &mut std::slice::Iter<'_, u32>,
    delivered: &mut Vec<String>,
) {
    while let Some(received) = session.poll_element() {
        match received {
            Received::Control(control) => delivered.push(named(&control)),
            Received::Schema(_) => delivered.push("SCHEMA".into()),
            Received::Batch(batch) => {
                let first = batch.body.first_chunk().copied().unwrap_or_default();
                let own = u32::from_be_bytes(first);
                let rows = rows.next().copied().unwrap_or(own);
                if session.grant(batch.taken, rows).is_ok() {
                    delivered.push("DATA".into());
                }
            }
        }
    }
}

/// An error in the words of the recordings, where these have some.
fn reason(error: &SessionError) -> &'static str {
    match error {
        SessionError::Frame(FrameError::Empty | FrameError::TooLong { .. }) => {
            "frame length corrupt"
        }
        SessionError::Frame(FrameError::Truncated { .. }) => "frame truncated mid-body",
        SessionError::Frame(FrameError::LegacyKind) => "legacy Data frame kind",
        SessionError::Frame(FrameError::Short { .. }) => "short",
        SessionError::Credit(_) => "window",
        SessionError::PeerLost { .. } => "lost",
        _ => "other",
    }
}

/// The sum of the grants in what a receiver sent.
fn granted(mut bytes: &[u8]) -> u64 {
    let mut deframer = Deframer::new(Direction::FromReceiver, false, FRAME_BYTES_MAX);
    let mut sum = 0;
    while let Some(Deframed::Small { kind, body }) =
        deframer.poll(&mut bytes).expect("proper frames")
    {
        match Frame::parse(kind, body).expect("a proper frame") {
            Frame::CreditUpdate { records, .. } => sum += u64::from(records),
            other => panic!("{other:?}"),
        }
    }
    assert!(deframer.handle_eof().is_ok());
    sum
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

#[test]
fn odd_streams_get_our_answers_in_both_forms() {
    for (name, text, answer, _) in ANSWERS {
        for negotiation in [Negotiation::Off, Negotiation::Prefer] {
            let played = play(&stream(text), negotiation, &[]);
            let said = played
                .delivered
                .iter()
                .map(|element| format!("{element} | "));
            let said = said.collect::<String>() + "END " + &played.end;
            assert_eq!(said, *answer, "{name}");
        }
    }
}

/// The folder of recordings of the wire, if they are at hand.
fn recordings() -> Option<PathBuf> {
    let folder = std::env::var_os("RINGWAY_VECTORS")?;
    Some(PathBuf::from(folder).join("wire"))
}

fn read(path: &PathBuf) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn recorded_answers_are_ours_but_for_named_defects() {
    let Some(folder) = recordings() else {
        return;
    };
    let text = String::from_utf8(read(&folder.join("probe_source.txt"))).expect("a text");
    let mut compared = 0;
    for (name, _, ours, defect) in ANSWERS {
        let prefix = format!("{name} [");
        let line = text.lines().find(|line| line.starts_with(&prefix));
        let Some((_, answer)) = line.and_then(|line| line.split_once("-> ")) else {
            panic!("{name} was not recorded");
        };
        let answer = answer.replace("END failure=", "END ");
        let end = answer.find(" records=").expect("an end");
        assert_eq!(
            &answer[..end] == *ours,
            defect.is_none(),
            "{name}: {answer}"
        );
        compared += 1;
    }
    assert_eq!(compared, ANSWERS.len());
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
    let Some(folder) = recordings() else {
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
    assert!(streams >= 17, "{streams} recordings");
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
