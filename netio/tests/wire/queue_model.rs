//! A sender's queue against a naive list: whatever is pushed, overtakes, is granted and is sent
//! in whatever order, the frames come out as the list has them.

use std::time::Duration;

use ringway_netio::frame::{Control, Ending, Frame, HEAD_BYTES, HEADER_BYTES, Kind};
use ringway_netio::session::{
    Negotiation, Outgoing, ReceiverOptions, SenderOptions, SenderSession,
};

use crate::ends::{Element, ReceiverEnd, barrier, batch, push, watermark};
use crate::seed::Seeded;

const NOW: Duration = Duration::ZERO;

/// A sender whose peer has offered so much, and what is pushed and not sent.
struct Run {
    sender: SenderSession<Vec<u8>>,
    queued: Vec<Element>,
    is_negotiated: bool,
    rows: u64,
    sequence: u64,
}

impl Run {
    fn new(negotiation: Negotiation) -> Self {
        let options = ReceiverOptions {
            negotiation,
            window_rows: 500,
            v1_window_rows: 500,
            ..ReceiverOptions::default()
        };
        let greeting = ReceiverEnd::new(options).transmit();
        let mut sender = SenderSession::new(SenderOptions::default(), NOW);
        sender.handle_input(NOW, &greeting);
        let mut run = Self {
            sender,
            queued: Vec::new(),
            is_negotiated: negotiation != Negotiation::Off,
            rows: 500,
            sequence: 0,
        };
        if run.is_negotiated {
            run.sender.push_schema(vec![1], 1).expect("room");
            let mut out = Vec::new();
            while run.sender.poll_transmit(&mut out).is_some() {}
            run.sequence = 1;
        }
        run
    }

    fn step(&mut self, seeded: &mut Seeded) {
        let number = seeded.number();
        match seeded.below(10) {
            0..3 => self.push(watermark(number as i64 >> 8)),
            3 => self.push(barrier(number, 0)),
            4 | 5 => self.push(batch(number as u32 % 200, 4 + number as usize % 50)),
            6 => {
                let (id, mode, terminal) = (number, 1, false);
                let barrier = Control::Barrier { id, mode, terminal };
                if let Ok(overtaken) = self.sender.push_priority(barrier) {
                    assert_eq!(overtaken, self.queued.len());
                    self.queued.insert(0, Element::Control(barrier));
                }
            }
            7 if !self.is_negotiated => {
                let more = number as u32 % 100;
                let mut grant = vec![0, 0, 0, 5, 4];
                grant.extend_from_slice(&more.to_be_bytes());
                self.sender.handle_input(NOW, &grant);
                self.rows += u64::from(more);
            }
            _ => self.transmit(),
        }
        let waiting: Vec<Element> = self.sender.queued().map(element).collect();
        assert_eq!(waiting, self.queued);
    }

    fn push(&mut self, element: Element) {
        let controls = |element: &&Element| matches!(element, Element::Control(_));
        let controls = self.queued.iter().filter(controls).count();
        let pushed = push(&mut self.sender, &element);
        match &element {
            Element::Batch(body) => {
                let rows = u64::from(crate::ends::rows_of(body));
                assert_eq!(pushed, rows <= self.rows);
                self.rows -= if pushed { rows } else { 0 };
            }
            Element::Control(control) => {
                if controls >= 128
                    && let Some(Element::Control(last)) = self.queued.last_mut()
                    && let Some(merged) = last.merge(*control)
                {
                    *last = merged;
                    return;
                }
                assert_eq!(pushed, controls < 256);
            }
        }
        if pushed {
            self.queued.push(element);
        }
    }

    fn transmit(&mut self) {
        let mut out = Vec::new();
        let Some(sent) = self.sender.poll_transmit(&mut out) else {
            return assert!(self.queued.is_empty());
        };
        let header = &out[sent.header];
        let kind = Kind(header[4]);
        let body = &header[HEADER_BYTES..];
        let (found, tag_at) = match (sent.body, Frame::parse(kind, body)) {
            (Some(found), _) => (Element::Batch(found), 0),
            (None, Ok(Frame::Control { control, .. })) => {
                (Element::Control(control), control.body_bytes())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(found, self.queued.remove(0));
        if self.is_negotiated {
            let number = body[tag_at..].first_chunk().copied().expect("a tag");
            assert_eq!(u64::from_be_bytes(number), self.sequence);
            assert_eq!(header.len() % 64, 0);
            self.sequence += 1;
        } else if kind == Kind::ARROW_BATCH {
            assert!(body.len() < HEAD_BYTES);
        }
    }
}

fn element(outgoing: &Outgoing<Vec<u8>>) -> Element {
    match outgoing {
        Outgoing::Control(control) => Element::Control(*control),
        Outgoing::Batch(batch) => Element::Batch(batch.body.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_queue_gives_what_a_list_would() {
    let mut seeded = Seeded::new();
    for _ in 0..20 {
        for negotiation in [Negotiation::Off, Negotiation::Prefer] {
            let mut run = Run::new(negotiation);
            for _ in 0..1500 {
                run.step(&mut seeded);
            }
            run.sender.close(Ending::End);
            while !run.queued.is_empty() {
                run.transmit();
            }
        }
    }
}
