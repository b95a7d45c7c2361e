//! What stands between batches and the bytes of a connection: frames, credit and sessions.

use std::hint::black_box;
use std::time::Duration;

use gungraun::prelude::*;
use ringway_netio::credit::{ReceiverCredit, SenderCredit};
use ringway_netio::frame::{BodyBuffer, Codec, Control, Deframed, Deframer, Direction, encode};
use ringway_netio::session::{
    Intake, Mode, OutBatch, Received, ReceiverOptions, ReceiverSession, SenderOptions,
    SenderSession,
};

/// Elements that one call of a bench moves.
const ELEMENTS: usize = 64;

/// Bytes and rows of a body.
const BODY_BYTES: usize = 1024;
const BODY_ROWS: u32 = 16;

/// No time passes.
const NOW: Duration = Duration::ZERO;

const WATERMARK: Control = Control::Watermark { timestamp_ms: 7 };

fn room() -> Vec<u8> {
    Vec::with_capacity(ELEMENTS * (BODY_BYTES + 64))
}

#[library_benchmark]
#[bench::controls_and_batches(room())]
pub(crate) fn frame_encode(mut out: Vec<u8>) -> Vec<u8> {
    for _ in 0..ELEMENTS {
        encode::control(&mut out, black_box(&WATERMARK));
        let header = encode::arrow_batch_header(&mut out, black_box(BODY_BYTES));
        header.expect("a body of this length has a frame");
    }
    out
}

fn framed() -> (Deframer, Vec<u8>) {
    let mut out = room();
    for _ in 0..ELEMENTS {
        encode::control(&mut out, &WATERMARK);
        let header = encode::arrow_batch_header(&mut out, BODY_BYTES);
        header.expect("a body of this length has a frame");
        out.resize(out.len() + BODY_BYTES, 0);
    }
    (Deframer::new(Direction::FromSender, false, 1 << 20), out)
}

#[library_benchmark]
#[bench::controls_and_batches(framed())]
pub(crate) fn deframe((mut deframer, bytes): (Deframer, Vec<u8>)) -> (Deframer, Vec<u8>, usize) {
    let mut input = black_box(&bytes[..]);
    let (mut controls, mut body_bytes) = (0, 0);
    loop {
        let polled = deframer.poll(&mut input).expect("it was just framed");
        match polled {
            Some(Deframed::Data { .. }) => body_bytes += deframer.take_body(&mut input).len(),
            Some(_) => controls += 1,
            None => break,
        }
    }
    assert_eq!((controls, body_bytes), (ELEMENTS, ELEMENTS * BODY_BYTES));
    (deframer, bytes, controls)
}

fn credits() -> (SenderCredit, ReceiverCredit) {
    let rows = BODY_ROWS * 2 * ELEMENTS as u32;
    let bytes = (BODY_BYTES * 2 * ELEMENTS) as u64;
    let sender = SenderCredit::counting_bytes(rows, bytes, bytes, bytes);
    (sender, ReceiverCredit::counting_bytes(rows, bytes))
}

#[library_benchmark]
#[bench::rows_and_bytes(credits())]
pub(crate) fn credit(
    (mut sender, mut receiver): (SenderCredit, ReceiverCredit),
) -> (SenderCredit, ReceiverCredit) {
    let bytes = black_box(BODY_BYTES as u64);
    for _ in 0..4 * ELEMENTS {
        sender.take(BODY_ROWS, bytes).expect("it is granted");
        let received = receiver.handle_received(Some(BODY_ROWS), bytes);
        received.expect("it was granted");
        let taken = receiver.handle_taken(Some(BODY_ROWS), BODY_ROWS, bytes);
        taken.expect("it came");
        if let Some((rows, bytes)) = receiver.poll_limits(false) {
            sender.handle_limits(rows, bytes).expect("it grows");
        }
    }
    (sender, receiver)
}

/// Both ends of a connection in the negotiated form, and what their drivers keep for them.
pub(crate) struct Ends {
    sender: SenderSession<Vec<u8>>,
    receiver: ReceiverSession<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
    forward: Vec<u8>,
    headers: Vec<u8>,
    backward: Vec<u8>,
}

fn ends() -> Ends {
    let mut ends = Ends {
        sender: SenderSession::new(SenderOptions::default(), NOW),
        receiver: ReceiverSession::new(ReceiverOptions::default(), NOW),
        bodies: vec![vec![0; BODY_BYTES]; ELEMENTS],
        forward: room(),
        headers: room(),
        backward: room(),
    };
    // The offer, the answer, and the first grant.
    for _ in 0..3 {
        ends.backward();
        ends.forward();
    }
    assert!(matches!(ends.sender.mode(), Mode::Negotiated(_)));
    let pushed = ends.sender.push_schema(vec![0; 64], 64);
    pushed.expect("there is credit for a schema");
    assert_eq!(ends.forward(), 1);
    ends.backward();
    ends
}

impl Ends {
    /// Sends all that waits, and says how many elements came.
    fn forward(&mut self) -> usize {
        self.forward.clear();
        self.headers.clear();
        while let Some(frame) = self.sender.poll_transmit(&mut self.headers) {
            let header = &self.headers[frame.header.clone()];
            self.forward.extend_from_slice(header);
            if let Some(body) = &frame.body {
                self.forward.extend_from_slice(body);
            }
        }
        let mut input = &self.forward[..];
        loop {
            match self.receiver.handle_input(NOW, &mut input) {
                Intake::Body(wanted) => {
                    let mut body = BodyBuffer::new(wanted.bytes);
                    body.fill(self.receiver.take_body(NOW, &mut input));
                    self.receiver.handle_body(body.into_bytes(), None);
                }
                Intake::More => break,
                Intake::Full | Intake::Ended => unreachable!("there is room, and no end"),
            }
        }
        let mut came = 0;
        while let Some(received) = self.receiver.poll_element() {
            if let Received::Batch(batch) = received {
                let granted = self.receiver.grant(batch.taken, BODY_ROWS);
                granted.expect("its rows are those that it was said to have");
            }
            came += 1;
        }
        came
    }

    /// Brings all grants back.
    fn backward(&mut self) {
        self.backward.clear();
        while self.receiver.poll_transmit(&mut self.backward) {}
        self.sender.handle_input(NOW, &self.backward);
    }
}

#[library_benchmark]
#[bench::batches_and_watermarks(ends())]
pub(crate) fn session_step(mut ends: Ends) -> Ends {
    while let Some(body) = ends.bodies.pop() {
        let pushed = ends.sender.push_batch(OutBatch {
            bytes: body.len() as u64,
            body,
            rows: BODY_ROWS,
            codec: Codec::default(),
        });
        assert!(pushed.is_ok(), "there is credit for all of them");
        let pushed = ends.sender.push_control(black_box(WATERMARK));
        assert!(pushed.is_ok(), "there is room for all of them");
    }
    let came = ends.forward();
    assert_eq!(came, 2 * ELEMENTS);
    ends.backward();
    ends
}
