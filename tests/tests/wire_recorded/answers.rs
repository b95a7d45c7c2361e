//! Odd streams to a receiver, and what comes of them.

use ringway_netio::session::Negotiation;

use crate::play::play;
use crate::{hex, read, recordings};

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

#[test]
fn recorded_answers_are_ours_but_for_named_defects() {
    let Some(folder) = recordings("wire") else {
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
