//! `ringway recv` and `ringway send`, between each other and with a peer that is made by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{ChildStderr, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::command::{errors, ringway, run, started};
use crate::running::{HANG, Running};

const CONTROL: &str = r#"{"watermark": -9223372036854775808}
{"idle": 1500}
{"barrier": 7, "mode": "aligned", "terminal": false}
{"barrier": 8, "mode": "unaligned", "terminal": false}
{"barrier": 9, "mode": 7, "terminal": true}
{"drain": {"subtask": 3, "target_parallelism": 8}}
"#;

/// A `recv` that listens.
struct Receiving {
    child: Running,
    errors: BufReader<ChildStderr>,
    at: String,
}

impl Receiving {
    fn start(args: &[&str]) -> Self {
        let args = [&["recv", "--listen", "127.0.0.1:0"], args].concat();
        let mut child = started(&mut ringway(&args));
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("it listens");
        let at = line.strip_prefix("listening ").expect(&line);
        Self {
            at: at.trim().to_owned(),
            child,
            errors,
        }
    }

    /// Its lines, its exit code, and what it said.
    fn ended(mut self) -> (Vec<Value>, Option<i32>, String) {
        let mut said = String::new();
        self.errors.read_to_string(&mut said).expect("text");
        let output = self.child.wait_with_output();
        (lines(&output), output.status.code(), said)
    }
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("text");
    parsed(text)
}

fn parsed(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("lines of JSON")
}

/// What `send` does with `input` as its standard input.
fn send(at: &str, args: &[&str], input: &str) -> Output {
    let args = [&["send", "--connect", at], args].concat();
    let mut child = started(ringway(&args).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may end before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output()
}

/// What arrives of `input`, and the exit code of the receiver; that of the sender is 0.
fn sent(wire_type: &str, args: &[&str], input: &str) -> (Vec<Value>, Option<i32>) {
    let receiving = Receiving::start(&[&["--type", wire_type, "--once"], args].concat());
    let output = send(
        &receiving.at,
        &[&["--type", wire_type], args].concat(),
        input,
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{args:?}: {}",
        errors(&output)
    );
    let (lines, code, _) = receiving.ended();
    (lines, code)
}

fn with_end(input: &str) -> Vec<Value> {
    let mut expected = parsed(input);
    expected.push(json!({ "end": "closed" }));
    expected
}

#[test]
fn what_is_sent_is_received_as_it_was_of_every_type_driver_and_form() {
    let rows = [
        ("int64", "[[1000, 1], [null, -9223372036854775808]]"),
        ("int32", "[[1, -2147483648]]"),
        ("uint32", "[[1, 4294967295]]"),
        ("uint64", "[[1, 18446744073709551615]]"),
        ("string", r#"[[1, "a\u0000b"], [2, ""]]"#),
        ("int64-keyed", "[[1, 2, 3]]"),
        ("string-keyed", r#"[[null, "k", 3]]"#),
        ("binary", r#"[[1, "00ff"]]"#),
    ];
    for (wire_type, rows) in rows {
        let input = format!("{{\"data\": {rows}}}\n{CONTROL}{{\"data\": []}}\n");
        assert_eq!(sent(wire_type, &[], &input), (with_end(&input), Some(0)));
    }
    let input = format!("{{\"data\": [[1, 2]]}}\n{CONTROL}");
    for args in [
        &["--driver", "epoll"][..],
        &["--v1"],
        &["--driver", "auto", "--v1"],
    ] {
        assert_eq!(
            sent("int64", args, &input),
            (with_end(&input), Some(0)),
            "{args:?}"
        );
    }
}

#[test]
fn a_file_of_batches_of_any_schema_is_received_as_rows_of_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.ndjson");
    std::fs::write(
        &path,
        "{\"a\": [1, null], \"b\": {\"c\": \"x\"}}\n{\"a\": null}\n",
    )
    .unwrap();
    let receiving = Receiving::start(&["--type", "arrow", "--once"]);
    let output = send(
        &receiving.at,
        &["--type", "arrow", path.to_str().unwrap()],
        "",
    );
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let expected = [
        json!({ "data": [[[1, null], {"c": "x"}], [null, null]] }),
        json!({ "end": "closed" }),
    ];
    assert_eq!(receiving.ended().0, expected);
}

#[test]
fn a_stream_that_breaks_off_is_an_error_and_never_an_end() {
    let receiving = Receiving::start(&["--type", "int64", "--once"]);
    let mut peer = TcpStream::connect(&receiving.at).unwrap();
    peer.write_all(&[0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 3, 232])
        .unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let (lines, code, _) = receiving.ended();
    assert_eq!(lines[0], json!({ "watermark": 1000 }));
    assert_eq!(lines[1]["end"], "error");
    let reason = lines[1]["reason"].as_str().unwrap();
    assert!(reason.contains("127.0.0.1"), "{reason}");
    assert_eq!((lines.len(), code), (2, Some(1)));
}

#[test]
fn an_input_that_fails_is_no_end_at_the_receiver() {
    let broken = "{\"data\": [[1, 2]]}\n{\"data\": [[1]]}\n";
    let failed = "{\"data\": [[1, 2]]}\n{\"end\": \"error\", \"reason\": \"out of paper\"}\n";
    for (input, expected) in [
        (broken, "standard input, line 2: row 0"),
        (failed, "out of paper"),
    ] {
        let receiving = Receiving::start(&["--type", "int64", "--once"]);
        let output = send(&receiving.at, &["--type", "int64"], input);
        let said = errors(&output);
        assert!(said.contains(expected), "{said}");
        assert_eq!(output.status.code(), Some(1));
        let (lines, code, _) = receiving.ended();
        assert_eq!(lines[0], json!({ "data": [[1, 2]] }));
        assert_eq!((lines[1]["end"].as_str(), code), (Some("error"), Some(1)));
    }
}

#[test]
fn a_sender_of_another_schema_is_refused_and_told_why() {
    let receiving = Receiving::start(&["--type", "string", "--once"]);
    let output = send(
        &receiving.at,
        &["--type", "int64"],
        "{\"data\": [[1, 2]]}\n",
    );
    let (lines, code, _) = receiving.ended();
    let reason = lines[0]["reason"].as_str().unwrap();
    assert!(reason.contains("value"), "{reason}");
    assert_eq!((lines.len(), code), (1, Some(1)));
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("value"), "{}", errors(&output));
}

#[test]
fn many_streams_are_served_at_a_time_and_numbered() {
    let mut receiving = Receiving::start(&["--type", "int64"]);
    let senders = (0..20).map(|value| {
        let at = receiving.at.clone();
        std::thread::spawn(move || {
            send(
                &at,
                &["--type", "int64"],
                &format!("{{\"data\": [[1, {value}]]}}\n"),
            )
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        assert_eq!(sender.join().unwrap().status.code(), Some(0));
    }
    let mut output = BufReader::new(receiving.child.stdout.take().unwrap());
    let mut values = vec![None; 20];
    let mut ended = vec![false; 20];
    for _ in 0..40 {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let stream = line["stream"].as_u64().unwrap() as usize;
        match line.get("data") {
            Some(rows) => values[stream] = rows[0][1].as_u64(),
            None => {
                assert_eq!(line["end"], "closed");
                assert!(values[stream].is_some(), "after its data");
                ended[stream] = true;
            }
        }
    }
    values.sort_unstable();
    assert_eq!(values, (0..20).map(Some).collect::<Vec<_>>());
    assert!(ended.into_iter().all(|ended| ended));
    receiving.child.kill().unwrap();
    receiving.child.wait().unwrap();
}

#[test]
fn a_slow_receiver_takes_its_time_and_everything() {
    const ELEMENTS: u32 = 5;
    const DELAY: Duration = Duration::from_millis(50);
    let input = "{\"data\": [[1, 2]]}\n".repeat(ELEMENTS as usize);
    let receiving = Receiving::start(&["--type", "int64", "--once", "--delay-ms", "50"]);
    // From before the first element can come until after the end, which comes behind the last delay.
    let start = Instant::now();
    let output = send(&receiving.at, &["--type", "int64"], &input);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let (lines, code, _) = receiving.ended();
    assert_eq!((lines, code), (with_end(&input), Some(0)));
    assert!(start.elapsed() >= DELAY * ELEMENTS, "{:?}", start.elapsed());
}

#[test]
fn a_receiver_that_takes_nothing_stops_its_sender_from_reading() {
    // What two edges, the window between them and the pipe hold is far below.
    const LINES_MAX: u64 = 100_000;
    let receiving = Receiving::start(&["--type", "int64", "--once", "--delay-ms", "1000000"]);
    let args = ["send", "--connect", &receiving.at, "--type", "int64"];
    let mut sender = started(ringway(&args).stdin(Stdio::piped()));
    let mut stdin = sender.stdin.take().expect("a pipe");
    let written = Arc::new(Mutex::new(0_u64));
    let counted = Arc::clone(&written);
    let writing = std::thread::spawn(move || {
        while stdin.write_all(b"{\"data\": [[1, 2]]}\n").is_ok() {
            *counted.lock().unwrap() += 1;
        }
    });
    let (mut before, since) = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let lines = *written.lock().unwrap();
        assert!(lines < LINES_MAX, "nothing holds the sender back");
        if lines > 0 && lines == before {
            break;
        }
        before = lines;
        assert!(since.elapsed() < HANG);
    }
    assert_eq!(sender.try_wait().unwrap(), None, "it goes on waiting");
    drop(sender);
    writing.join().unwrap();
}

#[test]
fn every_sender_to_a_receiver_that_goes_on_is_told_that_everything_arrived() {
    let mut receiving = Receiving::start(&["--type", "int64"]);
    for _ in 0..10 {
        let output = send(
            &receiving.at,
            &["--type", "int64"],
            "{\"data\": [[1, 2]]}\n",
        );
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    }
    receiving.child.kill().unwrap();
    let ends = receiving.ended().0;
    assert_eq!(
        ends.iter().filter(|line| line["end"] == "closed").count(),
        10
    );
}

#[test]
fn with_once_nobody_else_is_served() {
    let receiving = Receiving::start(&["--type", "int64", "--once"]);
    let first = TcpStream::connect(&receiving.at).unwrap();
    first.set_read_timeout(Some(HANG)).unwrap();
    let mut grant = [0; 9];
    (&first).read_exact(&mut grant).unwrap();
    let second = send(
        &receiving.at,
        &["--type", "int64", "--connect-timeout", "200ms"],
        "",
    );
    assert_eq!(second.status.code(), Some(1), "{}", errors(&second));
    drop(first);
    assert_eq!(receiving.ended().1, Some(1));
}

#[test]
fn a_receiver_whose_reader_left_has_failed() {
    let mut receiving = Receiving::start(&["--type", "int64", "--once"]);
    drop(receiving.child.stdout.take());
    // Its sender may well have been done before.
    let _ = send(&receiving.at, &["--type", "int64"], "{\"watermark\": 1}\n");
    assert_eq!(receiving.child.wait().unwrap().code(), Some(1));
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.arrow");
    let missing = Path::to_str(&missing).unwrap();
    let a_folder = Path::to_str(folder.path()).unwrap();
    let cases: [(&[&str], &str); 6] = [
        (
            &[
                "send",
                "--connect",
                "127.0.0.1:1",
                "--type",
                "int64",
                a_folder,
            ],
            "directory",
        ),
        (
            &["recv", "--listen", "127.0.0.1", "--type", "int64"],
            "HOST:PORT",
        ),
        (
            &["recv", "--listen", "127.0.0.1:0", "--type", "int65"],
            "int64-keyed",
        ),
        (
            &["recv", "--listen", "192.0.2.7:0", "--type", "int64"],
            "192.0.2.7",
        ),
        (
            &[
                "send",
                "--connect",
                "127.0.0.1:1",
                "--type",
                "arrow",
                missing,
            ],
            "missing.arrow",
        ),
        (&["send", "--connect", "127.0.0.1:1"], "--type"),
    ];
    for (args, expected) in cases {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            errors(&output).contains(expected),
            "{args:?}: {}",
            errors(&output)
        );
    }
    let args = [
        "send",
        "--connect",
        "127.0.0.1:1",
        "--type",
        "int64",
        "--connect-timeout",
        "100ms",
    ];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("127.0.0.1:1"),
        "{}",
        errors(&output)
    );
}
