//! Frames: exact bytes, any split, refusals.

use ringway_netio::frame::{
    Accept, Codec, Control, Deframed, Deframer, Direction, Ending, Extensions, FRAME_BYTES_MAX,
    Frame, FrameError, Grant, HEAD_BYTES, Head, Identity, KEPT_BYTES_MAX, Kind, Offer, Reason,
    ReasonCode, Tag, encode,
};

/// What a deframer finds, owned. Bodies of data frames are collected.
type Found = (Kind, Vec<u8>, Vec<u8>);

fn deframe(deframer: &mut Deframer, bytes: &[u8], chunk: usize) -> Result<Vec<Found>, FrameError> {
    let mut found: Vec<Found> = Vec::new();
    for mut input in bytes.chunks(chunk.max(1)) {
        loop {
            if deframer.body_remaining() > 0 {
                let part = deframer.take_body(&mut input).to_vec();
                found.last_mut().expect("a data frame").2.extend(part);
                if deframer.body_remaining() > 0 {
                    break;
                }
            }
            match deframer.poll(&mut input)? {
                None => break,
                Some(Deframed::Small { kind, body }) => {
                    found.push((kind, body.to_vec(), Vec::new()));
                }
                Some(Deframed::Data { kind, head, .. }) => {
                    found.push((kind, head.to_vec(), Vec::new()));
                }
            }
        }
    }
    Ok(found)
}

fn from_sender() -> Deframer {
    Deframer::new(Direction::FromSender, true, FRAME_BYTES_MAX)
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 1).to_be_bytes().to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(body);
    bytes
}

fn a_stream_of_all_kinds() -> Vec<u8> {
    let mut out = Vec::new();
    let tag = Tag {
        sequence: 7,
        channel: 0,
    };
    let terminal = Control::Barrier {
        id: 3,
        mode: 9,
        terminal: true,
    };
    encode::control(&mut out, &Control::Watermark { timestamp_ms: -1 });
    encode::control(&mut out, &terminal);
    encode::arrow_batch_header(&mut out, 300).unwrap();
    out.extend_from_slice(&[5; 300]);
    out.extend(frame(77, &[1; 40]));
    encode::tagged_control(&mut out, &terminal, tag, true);
    let head = Head {
        tag,
        rows: 12,
        codec: Codec::Zstd,
    };
    encode::headed(&mut out, Kind::BATCH, &head, 10).unwrap();
    out.extend_from_slice(&[6; 10]);
    encode::arrow_batch_header(&mut out, 0).unwrap();
    out.extend(frame(8, &[0; 1000]));
    encode::close(&mut out);
    out
}

#[test]
fn the_same_frames_are_found_in_any_split() {
    let bytes = a_stream_of_all_kinds();
    let whole = deframe(&mut from_sender(), &bytes, bytes.len()).unwrap();
    let kinds: Vec<u8> = whole.iter().map(|(kind, ..)| kind.0).collect();
    assert_eq!(kinds, [1, 5, 7, 5, 226, 7, 8, 3]);
    assert_eq!(whole[2].2, [5; 300]);
    assert_eq!(whole[4].1.len(), HEAD_BYTES);
    assert_eq!(whole[4].2, [6; 10]);
    assert_eq!(whole[6].1.len(), KEPT_BYTES_MAX);
    for chunk in 1..bytes.len() {
        let mut deframer = from_sender();
        assert_eq!(deframe(&mut deframer, &bytes, chunk).unwrap(), whole);
        assert!(deframer.handle_eof().is_ok());
    }
}

#[test]
fn an_end_of_the_connection_is_told_apart_inside_of_a_frame_and_between_two() {
    let bytes = a_stream_of_all_kinds();
    let mut bounds = 0;
    for cut in 0..=bytes.len() {
        let mut deframer = from_sender();
        deframe(&mut deframer, &bytes[..cut], cut).unwrap();
        match deframer.handle_eof() {
            Ok(()) => bounds += 1,
            Err(error) => assert!(matches!(error, FrameError::Truncated { .. })),
        }
    }
    assert_eq!(bounds, 10, "nine frames have ten bounds");
}

#[test]
fn what_the_header_forbids_is_refused_before_the_body() {
    let refused = |bytes: &[u8]| deframe(&mut from_sender(), bytes, 1).unwrap_err();
    assert_eq!(refused(&[0, 0, 0, 0]), FrameError::Empty);
    let over = FrameError::TooLong {
        length_bytes: FRAME_BYTES_MAX + 1,
        limit_bytes: FRAME_BYTES_MAX,
    };
    assert_eq!(refused(&(FRAME_BYTES_MAX + 1).to_be_bytes()), over);
    assert!(matches!(refused(&[0xff; 4]), FrameError::TooLong { .. }));
    assert_eq!(refused(&[0, 0, 0, 1, 0]), FrameError::LegacyKind);
    let short_head = [&[0, 0, 0, 59, 226][..], &[0; 58]].concat();
    assert!(matches!(refused(&short_head), FrameError::Short { .. }));

    let exact = [&FRAME_BYTES_MAX.to_be_bytes()[..], &[7]].concat();
    let mut deframer = from_sender();
    deframe(&mut deframer, &exact, 1).unwrap();
    assert_eq!(deframer.body_remaining(), FRAME_BYTES_MAX as usize - 1);
    let mut low = Deframer::new(Direction::FromSender, false, 10);
    assert!(deframe(&mut low, &[0, 0, 0, 11], 4).is_err());
}

#[test]
fn kinds_of_the_other_direction_and_of_the_negotiated_form_are_skipped_where_unknown() {
    let bytes = [
        frame(4, &[1]),
        frame(226, &[]),
        frame(224, &[1, 2]),
        frame(255, &[9; 500]),
        frame(1, &[0; 8]),
    ]
    .concat();
    let mut plain = Deframer::new(Direction::FromSender, false, FRAME_BYTES_MAX);
    let found = deframe(&mut plain, &bytes, 3).unwrap();
    assert_eq!(found, [(Kind::WATERMARK, vec![0; 8], vec![])]);
    let mut backward = Deframer::new(Direction::FromReceiver, false, FRAME_BYTES_MAX);
    let found = deframe(&mut backward, &bytes, 3).unwrap();
    assert_eq!(found, [(Kind::CREDIT_UPDATE, vec![1], vec![])]);
}

#[test]
fn short_bodies_of_known_kinds_are_errors_and_trailing_bytes_are_not() {
    let needed = [
        (1, 8),
        (2, 8),
        (4, 4),
        (5, 8),
        (6, 8),
        (8, 8),
        (224, 64),
        (227, 24),
        (228, 4),
    ];
    let zeros = [0; 200];
    for (kind, needed) in needed {
        for length in 0..needed {
            let parsed = Frame::parse(Kind(kind), &zeros[..length]);
            let short = matches!(parsed, Err(FrameError::Short { .. }));
            assert!(short, "kind {kind} with {length} bytes");
        }
        // Bytes behind are those of a newer peer; an Accept of zeros lacks its magic.
        for length in [needed, needed + 1, needed + 90] {
            let parsed = Frame::parse(Kind(kind), &zeros[..length]);
            assert!(kind == 224 || parsed.is_ok(), "kind {kind} with {length}");
        }
    }
    for length in [0, 1, 40] {
        let parsed = Frame::parse(Kind::CLOSE, &zeros[..length]);
        assert!(matches!(parsed, Ok(Frame::Close { .. })));
    }
    assert_eq!(Frame::parse(Kind(0), &[]), Err(FrameError::LegacyKind));
    let unknown = Frame::parse(Kind(9), &[1]);
    assert_eq!(unknown, Ok(Frame::Unknown(Kind(9))));
}

#[test]
fn a_barrier_without_a_mode_is_aligned_and_other_modes_are_kept() {
    let id = 5u64.to_be_bytes();
    let mode = |body: &[u8]| match Control::parse(Kind::BARRIER, body) {
        Ok(Some(Control::Barrier {
            id: 5,
            mode,
            terminal: false,
        })) => mode,
        other => panic!("{other:?}"),
    };
    assert_eq!(mode(&id), 0);
    for byte in [0, 1, 2, 255] {
        assert_eq!(mode(&[&id[..], &[byte]].concat()), byte);
        assert_eq!(mode(&[&id[..], &[byte, 3, 4]].concat()), byte);
    }
}

#[test]
fn what_is_written_reads_back() {
    let identity = Identity {
        job: 1 << 100,
        edge: 12,
        attempt: 3,
    };
    for identity in [None, Some(identity)] {
        let extensions = match identity {
            Some(_) => Extensions::ALL,
            None => Extensions::ALL.without(Extensions::IDENTITY),
        };
        let offer = Offer {
            token: u128::MAX - 5,
            extensions,
            window_rows: 99,
            window_bytes: 1 << 40,
            frame_bytes_max: 1 << 20,
            identity,
        };
        let mut out = Vec::new();
        encode::credit_update(&mut out, 2048, Some(&offer));
        match Frame::parse(Kind(out[4]), &out[5..]) {
            Ok(Frame::CreditUpdate { records, trailing }) => {
                assert_eq!(records, 2048);
                assert_eq!(Offer::parse(trailing), Some(offer));
                assert_eq!(Offer::parse(&trailing[..trailing.len() - 1]), None);
                let longer = [trailing, &[1, 2, 3]].concat();
                assert_eq!(Offer::parse(&longer), Some(offer));
            }
            other => panic!("{other:?}"),
        }
        let accept = Accept {
            token: offer.token,
            extensions,
            identity,
        };
        out.clear();
        encode::accept(&mut out, &accept);
        let parsed = Frame::parse(Kind(out[4]), &out[5..]);
        assert_eq!(parsed, Ok(Frame::Accept(accept)));
    }
    let grant = Grant {
        channel: 0,
        rows_limit: u64::MAX,
        bytes_limit: 17,
    };
    let mut out = Vec::new();
    encode::grant(&mut out, &grant);
    let parsed = Frame::parse(Kind(out[4]), &out[5..]);
    assert_eq!(parsed, Ok(Frame::Grant(grant)));
}

#[test]
fn a_reason_of_any_length_fits_its_frame() {
    for length in [0, 5, 251, 252, 253, 5000] {
        for text in ["x".repeat(length), "é".repeat(length)] {
            let mut out = Vec::new();
            encode::abort(&mut out, &Reason::new(ReasonCode::Other(999), text.clone()));
            let Ok(Frame::Abort(reason)) = Frame::parse(Kind(out[4]), &out[5..]) else {
                panic!("no reason");
            };
            assert_eq!(reason.code, ReasonCode::Other(999));
            assert!(text.starts_with(&reason.text));
            assert!(reason.text.len() >= text.len().min(Reason::TEXT_BYTES_MAX - 1));
        }
    }
}

#[test]
fn a_close_says_how_it_ended() {
    for ending in [Ending::End, Ending::Stopped] {
        let mut out = Vec::new();
        encode::tagged_close(&mut out, ending, Tag::default(), true);
        assert_eq!(out.len(), 64);
        let parsed = Frame::parse(Kind(out[4]), &out[5..]);
        assert!(matches!(parsed, Ok(Frame::Close { ending: found, .. }) if found == ending));
    }
}

#[test]
fn another_protocol_may_use_the_same_framing() {
    let mut bytes = Vec::new();
    for (kind, body) in [(1, &b"hello"[..]), (226, b""), (255, b"x")] {
        encode::opaque_header(&mut bytes, Kind(kind), body.len()).unwrap();
        bytes.extend_from_slice(body);
    }
    let mut deframer = Deframer::new(Direction::Opaque, false, 100);
    let found = deframe(&mut deframer, &bytes, 3).unwrap();
    let bodies: Vec<&[u8]> = found.iter().map(|(_, _, body)| &body[..]).collect();
    assert_eq!(bodies, [&b"hello"[..], b"", b"x"]);
    let mut deframer = Deframer::new(Direction::Opaque, false, 100);
    assert!(deframe(&mut deframer, &[0, 0, 0, 1, 0], 5).is_err());
}
