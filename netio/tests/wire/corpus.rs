//! The committed corpus of hostile and odd frames.
//!
//! A file of `tests/corpus` holds lines: `#` a remark, `<` bytes in hex, `=` what comes of them
//! at a receiver (`to` begins with `receiver`) or at a sender. Regressions get a file each.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use ringway_netio::frame::Control;
use ringway_netio::session::{ReceiverOptions, SenderOptions, SenderSession};

use crate::ends::{Element, ReceiverEnd, rows_of, transmit};
use crate::feed::{feed_receiver, feed_sender};
use crate::seed::Seeded;

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) is_to_receiver: bool,
    pub(crate) bytes: Vec<u8>,
    outcome: String,
}

/// All files, by name.
pub(crate) fn read() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut cases: Vec<Case> = std::fs::read_dir(folder)
        .expect("the corpus is in the repository")
        .map(|entry| parse(&entry.expect("a file").path()))
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() >= 20, "the corpus has shrunk");
    cases
}

fn parse(path: &std::path::Path) -> Case {
    let name = path
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let text = std::fs::read_to_string(path).expect("a text");
    let mut case = Case {
        is_to_receiver: name.starts_with("receiver"),
        name,
        bytes: Vec::new(),
        outcome: String::new(),
    };
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some(("<", hex)) => case.bytes.extend(decode(hex)),
            Some(("=", outcome)) => case.outcome = outcome.trim().to_string(),
            Some(("#", _)) | None => {}
            Some(_) => panic!("{}: {line}", case.name),
        }
    }
    case
}

fn decode(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex"))
        .collect()
}

/// What a receiver makes of it, in the words of the corpus.
fn at_receiver(bytes: &[u8]) -> String {
    let mut end = ReceiverEnd::new(ReceiverOptions::default());
    end.transmit();
    end.receive(Duration::ZERO, bytes);
    while end.take(Duration::ZERO, usize::MAX) > 0 {}
    end.session.handle_eof();
    let mut said = String::new();
    for element in &end.got {
        let _ = match element {
            Element::Batch(body) => write!(said, "batch {} | ", rows_of(body)),
            Element::Control(Control::Watermark { timestamp_ms }) => {
                write!(said, "watermark {timestamp_ms} | ")
            }
            Element::Control(control) => write!(said, "{control:?} | "),
        };
    }
    match end.ending() {
        Ok(ending) => said + &format!("{ending:?}"),
        Err(error) => said + &error.to_string(),
    }
}

/// What a sender makes of it.
fn at_sender(bytes: &[u8]) -> String {
    let mut sender: SenderSession<Vec<u8>> =
        SenderSession::new(SenderOptions::default(), Duration::ZERO);
    sender.handle_input(Duration::ZERO, bytes);
    transmit(&mut sender);
    match sender.error() {
        Some(error) => error.to_string(),
        None => {
            let mode = match sender.mode() {
                ringway_netio::session::Mode::Negotiated(_) => "negotiated".to_string(),
                mode => format!("{mode:?}"),
            };
            format!("{mode}, {} rows", sender.credit().available_rows())
        }
    }
}

#[test]
fn every_file_of_the_corpus_gets_its_answer() {
    let mut wrong = String::new();
    for case in read() {
        let outcome = match case.is_to_receiver {
            true => at_receiver(&case.bytes),
            false => at_sender(&case.bytes),
        };
        if outcome != case.outcome {
            let _ = writeln!(
                wrong,
                "{}:\n  = {outcome}\n  not {}",
                case.name, case.outcome
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn no_file_of_the_corpus_panics_in_any_split_or_direction() {
    let mut seeded = Seeded::new();
    for case in read() {
        for _ in 0..20 {
            feed_receiver(&case.bytes, &mut seeded);
            feed_sender(&case.bytes, &mut seeded);
        }
    }
}
