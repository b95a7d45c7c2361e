//! Recorded streams through real edges: what a connection brings, as its receiver has it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type, UInt64Type};
use ringway::edge::remote::{RemoteOptions, RemoteParts, receive_over, send_over};
use ringway::edge::{EdgeOptions, Ending, Popped, Receiver};
use ringway::element::StreamElement;
use ringway::wire::control_of;
use ringway_tests::sockets::{self, io, pair};
use ringway_tests::within::LONG;

use crate::{EXAMPLES, STREAMS_MIN, hex, named, read, recordings};

type Elements = Vec<StreamElement<RecordBatch>>;

fn parts(remote: RemoteOptions) -> RemoteParts<RecordBatch> {
    sockets::parts(EdgeOptions::named("recorded"), remote)
}

fn take(mut receiver: Receiver<RecordBatch>) -> (Elements, Ending) {
    let mut elements = Vec::new();
    loop {
        match receiver.pop_timeout(LONG) {
            Popped::Element(element) => elements.push(element),
            Popped::Ended(ending) => return (elements, ending),
            Popped::Empty => panic!("nothing comes after {} elements", elements.len()),
        }
    }
}

/// What a receiver has of bytes that a peer of version 1 sends.
fn received(bytes: &[u8], remote: RemoteOptions) -> (Elements, Ending) {
    let (mut out, back) = pair();
    let bytes = bytes.to_vec();
    let peer = thread::spawn(move || {
        out.write_all(&bytes).expect("it is read");
        out.shutdown(Shutdown::Write).expect("a connection");
        // Its grants.
        let _ = out.read_to_end(&mut Vec::new());
    });
    // The one who plays does not wait for credit, as the one who was recorded did.
    let remote = RemoteOptions {
        v1_window_rows: 1 << 20,
        ..remote
    };
    let receiver = receive_over(&io(), back.into(), parts(remote)).expect("links");
    let taken = take(receiver);
    peer.join().expect("the peer");
    taken
}

/// What a receiver has of what our sender makes of elements.
fn passed_on(elements: &Elements, remote: &RemoteOptions) -> Elements {
    let (out, back) = pair();
    let mut sender = send_over(&io(), out.into(), parts(remote.clone())).expect("links");
    let receiver = receive_over(&io(), back.into(), parts(remote.clone())).expect("links");
    let elements = elements.clone();
    let sending = thread::spawn(move || {
        for element in elements {
            sender.push_timeout(element, LONG).expect("room");
        }
        sender.finish_and_wait(LONG).expect("a peer that takes all");
    });
    let (taken, ending) = take(receiver);
    sending.join().expect("the sender");
    assert!(matches!(ending, Ending::End | Ending::Stopped), "{ending}");
    taken
}

/// Rows and control elements, each a line, since boundaries of batches carry no meaning.
fn lines(elements: &Elements) -> Vec<String> {
    let mut lines = Vec::new();
    for element in elements {
        match element {
            StreamElement::Data(batch) => {
                lines.extend((0..batch.num_rows()).map(|n| row(batch, n)))
            }
            control => lines.push(named(&control_of(control).expect("a control element"))),
        }
    }
    lines
}

/// As the recordings write rows, except those of structs.
fn row(batch: &RecordBatch, n: usize) -> String {
    let values: Vec<String> = batch.columns()[1..]
        .iter()
        .map(|column| value(column, n))
        .collect();
    let values = match &values[..] {
        [value] => value.clone(),
        many => format!("({})", many.join(":")),
    };
    format!("{values}@{}", value(batch.column(0), n))
}

fn value(column: &dyn Array, n: usize) -> String {
    if column.is_null(n) {
        return "null".to_owned();
    }
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(n).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(n).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(n).to_string(),
        DataType::Utf8 => quoted(column.as_string::<i32>().value(n).as_bytes()),
        DataType::Binary => quoted(column.as_binary::<i32>().value(n)),
        other => format!("{other}"),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = "\"".to_owned();
    for byte in bytes {
        match byte {
            b'!'..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02x}").expect("a text"),
        }
    }
    text + "\""
}

/// The lines of a recorded delivery, the same way.
fn expected(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("END")) {
        match line.strip_prefix("DATA n=") {
            Some(rows) => lines.extend(rows.split(' ').skip(1).map(str::to_owned)),
            None => lines.push(line.trim_end().to_owned()),
        }
    }
    lines
}

fn both_forms() -> [RemoteOptions; 2] {
    [RemoteOptions::default(), RemoteOptions::version_1()]
}

#[test]
fn the_examples_of_the_documentation_come_out_of_an_edge_as_they_say() {
    let elements = |(example, _): &&(&str, &str)| example.contains(" 0") && hex(example)[4] != 4;
    let examples: Vec<_> = EXAMPLES.iter().filter(elements).collect();
    let bytes: Vec<u8> = examples
        .iter()
        .flat_map(|(example, _)| hex(example))
        .collect();
    let meanings = examples.iter().map(|(_, meaning)| *meaning);
    let meanings: Vec<&str> = meanings.filter(|meaning| *meaning != "CLOSE").collect();
    for remote in both_forms() {
        let (elements, ending) = received(&bytes, remote.clone());
        assert_eq!(lines(&elements), meanings);
        // The last drain marker is one that stops.
        assert_eq!(ending, Ending::Stopped);
        assert_eq!(lines(&passed_on(&elements, &remote)), meanings);
    }
}

#[test]
fn recorded_streams_come_out_of_an_edge_and_go_on_over_another_unchanged() {
    let Some(folder) = recordings("wire") else {
        return;
    };
    let mut streams = 0;
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        let Some(name) = name.strip_suffix(".expected.txt") else {
            continue;
        };
        streams += 1;
        let text = String::from_utf8(read(&folder.join(format!("{name}.expected.txt"))));
        let expected = expected(&text.expect("a text"));
        let bytes = read(&folder.join(format!("{name}.bin")));
        for remote in both_forms() {
            let (elements, ending) = received(&bytes, remote.clone());
            let lines_before = lines(&elements);
            if name.contains("struct") {
                assert!(!lines_before.is_empty(), "{name}");
            } else {
                assert_eq!(lines_before, expected, "{name}");
            }
            // The reference calls these ends clean (D16).
            let is_cut = name.contains("eof_without_close") || name.contains("crash");
            assert_eq!(
                matches!(ending, Ending::Failed(_)),
                is_cut,
                "{name}: {ending:?}"
            );
            assert_eq!(
                lines(&passed_on(&elements, &remote)),
                lines_before,
                "{name}"
            );
        }
    }
    assert!(streams >= STREAMS_MIN, "{streams} recordings");
}
