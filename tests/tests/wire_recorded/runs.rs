//! A sender that is told what to send, against a peer that grants, breaks and dies.

use ringway_netio::frame::{Codec, Control, Ending, Kind, encode};
use ringway_netio::session::{OutBatch, Refusal, SenderOptions, SenderSession};

use crate::{NOW, hex, read, recordings};

/// What a sender is told to send, what its peer does meanwhile, and the frames that result, by
/// the names of the recorded runs. `false` where the reference goes on after a broken frame from
/// its peer and ours fails at once.
const RUNS: &[(&str, &str, &str, &str, bool)] = &[
    (
        "no credit: control frames pass, data waits",
        "wm barrier data=1 close",
        "grant=2048",
        "WM BARRIER BATCH CLOSE",
        true,
    ),
    (
        "credit 100 then 200 for a 250-row batch",
        "whole=250 close",
        "grant=100 grant=200",
        "BATCH CLOSE",
        true,
    ),
    (
        "data blocked on credit: later control frames wait behind it (one thread)",
        "data=10 wm close",
        "grant=10",
        "BATCH WM CLOSE",
        true,
    ),
    (
        "one giant grant 4294967295 then 1 (wraps to 0)",
        "",
        "grant=4294967295 grant=1",
        "",
        true,
    ),
    (
        "CreditUpdate with trailing bytes",
        "data=5 close",
        "raw=0000000904000000050a0b0c0d",
        "BATCH CLOSE",
        true,
    ),
    (
        "short CreditUpdate (len 3) is ignored, then good",
        "data=5 close",
        "raw=00000003040000 grant=5",
        "BATCH CLOSE",
        true,
    ),
    (
        "unknown kinds on reverse channel are ignored",
        "data=5 close",
        "raw=000000030901020000000901000000000000004d grant=5",
        "BATCH CLOSE",
        true,
    ),
    (
        "zero-length frame on reverse channel ends the reader: data fails, control passes",
        "wm data=1 wm close",
        "raw=00000000",
        "WM",
        false,
    ),
    (
        "same with ample credit already given: data still passes",
        "wait wait data=1 wm close",
        "grant=50 raw=00000000",
        "",
        false,
    ),
    (
        "peer closes with no credit: blocked push returns false",
        "data=1 wm close",
        "lost",
        "",
        true,
    ),
    (
        "peer half-closes (SHUT_WR) after 10 credits",
        "data=10 data=1 wm close",
        "grant=10 eof",
        "BATCH WM CLOSE",
        true,
    ),
    (
        "5000-row batch, window granted once, then per-frame grants",
        "data=5000 close",
        "grant=2048 grant=1024 grant=1024 grant=903 grant=1",
        "BATCH BATCH BATCH BATCH BATCH CLOSE",
        true,
    ),
    (
        "peer dies in the middle of a 5000-row batch",
        "data=5000 close",
        "grant=2048 lost",
        "BATCH BATCH",
        true,
    ),
];

#[test]
fn a_sender_does_what_it_is_told_as_far_as_its_peer_lets_it() {
    for (name, orders, peer, frames, _) in RUNS {
        assert_eq!(Told::run(orders, peer), *frames, "{name}");
    }
}

#[test]
fn recorded_runs_of_a_sender_have_our_frames_but_where_ours_fails_at_once() {
    let Some(folder) = recordings("wire") else {
        return;
    };
    let text = String::from_utf8(read(&folder.join("probe_sink.txt"))).expect("a text");
    let mut lines = text.lines();
    let mut compared = 0;
    while let Some(line) = lines.next() {
        let run = |(name, ..): &&(&str, _, _, _, _)| line.starts_with(&format!("## {name}"));
        let Some((name, _, _, ours, same)) = RUNS.iter().find(run) else {
            continue;
        };
        let frames = lines.next().and_then(|line| line.split("marks:").next());
        let frames = frames.expect("frames").trim_start();
        let kind = |word: &str| {
            let word = word.trim_matches(|letter: char| !letter.is_ascii_uppercase());
            word.split('(')
                .next()
                .map(str::to_string)
                .unwrap_or_default()
        };
        let words = frames.trim_start_matches("frames:").split(',').map(kind);
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        assert_eq!(words.join(" ") == *ours, *same, "{name}: {words:?}");
        compared += 1;
    }
    assert_eq!(compared, RUNS.len());
}

/// A sender that is told what to do, one thing after the other, and the frames it sends.
struct Told {
    session: SenderSession<Vec<u8>>,
    frames: Vec<&'static str>,
}

impl Told {
    /// Obeys the orders while the peer does its own: whenever the sender waits for it.
    fn run(orders: &str, peer: &str) -> String {
        let mut told = Self {
            session: SenderSession::new(SenderOptions::default(), NOW),
            frames: Vec::new(),
        };
        let mut peer = peer.split_whitespace();
        for order in orders.split_whitespace() {
            let (order, rows) = order.split_once('=').unwrap_or((order, "0"));
            let batch = rows.parse().expect("a number");
            let mut left: u32 = batch;
            if order == "wait" {
                peer.next().into_iter().for_each(|event| told.handle(event));
            }
            told.push_control(order);
            while told.push_rows(batch, &mut left, order == "whole") {
                match peer.next() {
                    Some(event) => told.handle(event),
                    None => break,
                }
            }
        }
        peer.for_each(|event| told.handle(event));
        told.frames.join(" ")
    }

    fn push_control(&mut self, order: &str) {
        let pushed = match order {
            "wm" => Control::Watermark { timestamp_ms: 1 },
            "barrier" => Control::Barrier {
                id: 2,
                mode: 0,
                terminal: false,
            },
            "close" => {
                self.session.close(Ending::End);
                return self.transmit();
            }
            _ => return,
        };
        // Refused only where the session has failed, which the frames show.
        let _ = self.session.push_control(pushed);
        self.transmit();
    }

    /// Pushes rows in pieces or as one, and says whether some wait for the peer.
    fn push_rows(&mut self, batch: u32, left: &mut u32, whole: bool) -> bool {
        while *left > 0 {
            let piece = self.session.piece().filter(|_| !whole);
            let rows = piece.map_or(*left, |piece| piece.rows_each(batch).min(*left));
            let pushed = self.session.push_batch(OutBatch {
                body: vec![0; 8],
                bytes: 8,
                rows,
                codec: Codec::None,
            });
            match pushed {
                Ok(()) => *left -= rows,
                Err(rejected) => return rejected.why == Refusal::NoCredit,
            }
            self.transmit();
        }
        false
    }

    fn handle(&mut self, event: &str) {
        match event.split_once('=') {
            Some(("grant", records)) => {
                let mut frame = Vec::new();
                let records = records.parse().expect("a number");
                encode::credit_update(&mut frame, records, None);
                self.session.handle_input(NOW, &frame);
            }
            Some(("raw", bytes)) => self.session.handle_input(NOW, &hex(bytes)),
            _ if event == "eof" => self.session.handle_eof(NOW),
            _ => self.session.handle_lost(NOW, "connection reset"),
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        while self.session.poll_transmit(&mut out).is_some() {
            self.frames.push(match Kind(out[4]) {
                Kind::WATERMARK => "WM",
                Kind::BARRIER => "BARRIER",
                Kind::ARROW_BATCH => "BATCH",
                Kind::CLOSE => "CLOSE",
                other => panic!("{other}"),
            });
            out.clear();
        }
    }
}
