//! Writing frames, into a buffer that its owner clears and uses again.
//!
//! A batch is written as the bytes before its body only: the body is gathered into the send
//! from where it lies.

use super::{
    ALIGNMENT_BYTES, Accept, Control, Ending, FILLER_BYTES, FRAME_BYTES_MAX, FrameError, Grant,
    HEADER_BYTES, Head, Kind, Offer, Reason, Tag,
};

/// Appends a control element.
pub fn control(out: &mut Vec<u8>, control: &Control) {
    frame(out, control.kind(), |out| control.write_body(out));
}

/// Appends a control element in the negotiated form: with its tag, and padded where `aligned`.
pub fn tagged_control(out: &mut Vec<u8>, control: &Control, tag: Tag, aligned: bool) {
    frame(out, control.kind(), |out| {
        control.write_body(out);
        tag.write(out);
        pad(out, aligned, control.body_bytes() + Tag::BYTES);
    });
}

/// Appends the end of a stream.
pub fn close(out: &mut Vec<u8>) {
    frame(out, Kind::CLOSE, |_| {});
}

/// Appends the end of a stream in the negotiated form: with how it ended, its tag, and padded
/// where `aligned`.
pub fn tagged_close(out: &mut Vec<u8>, ending: Ending, tag: Tag, aligned: bool) {
    frame(out, Kind::CLOSE, |out| {
        out.push(ending.byte());
        tag.write(out);
        pad(out, aligned, 1 + Tag::BYTES);
    });
}

/// Appends a grant of records; the first one of a connection may carry an offer.
pub fn credit_update(out: &mut Vec<u8>, records: u32, offer: Option<&Offer>) {
    frame(out, Kind::CREDIT_UPDATE, |out| {
        out.extend_from_slice(&records.to_be_bytes());
        if let Some(offer) = offer {
            offer.write(out);
        }
    });
}

/// Appends what stands before the body of a batch with its schema.
///
/// # Errors
/// [`FrameError::TooLong`] where no frame may be so long. Split the batch.
pub fn arrow_batch_header(out: &mut Vec<u8>, body_bytes: usize) -> Result<(), FrameError> {
    header(out, Kind::ARROW_BATCH, body_bytes)
}

/// Appends what stands before the body of a schema or of a batch without one.
///
/// # Errors
/// [`FrameError::TooLong`] where no frame may be so long. Split the batch.
pub fn headed(
    out: &mut Vec<u8>,
    kind: Kind,
    head: &Head,
    body_bytes: usize,
) -> Result<(), FrameError> {
    header(out, kind, body_bytes.saturating_add(super::HEAD_BYTES))?;
    head.write(out);
    Ok(())
}

/// Appends the answer to an offer.
pub fn accept(out: &mut Vec<u8>, accept: &Accept) {
    frame(out, Kind::ACCEPT, |out| accept.write(out));
}

/// Appends the limits that a receiver allows.
pub fn grant(out: &mut Vec<u8>, grant: &Grant) {
    frame(out, Kind::GRANT, |out| grant.write(out));
}

/// Appends why the stream ends without an end. A long text is cut.
pub fn abort(out: &mut Vec<u8>, reason: &Reason) {
    frame(out, Kind::ABORT, |out| reason.write(out));
}

/// Appends that everything up to the sender's Close is here.
pub fn closed(out: &mut Vec<u8>) {
    frame(out, Kind::CLOSED, |_| {});
}

/// Appends what means nothing: [`FILLER_BYTES`] in all.
pub fn filler(out: &mut Vec<u8>) {
    frame(out, Kind::FILLER, |out| {
        out.resize(out.len() + FILLER_BYTES - HEADER_BYTES, 0);
    });
}

/// Appends what stands before the body of a frame of another protocol in the same framing:
/// see [`Direction::Opaque`](super::Direction::Opaque).
///
/// # Errors
/// [`FrameError::TooLong`] where no frame may be so long.
pub fn opaque_header(out: &mut Vec<u8>, kind: Kind, body_bytes: usize) -> Result<(), FrameError> {
    header(out, kind, body_bytes)
}

/// The header of a frame whose body follows from elsewhere.
fn header(out: &mut Vec<u8>, kind: Kind, body_bytes: usize) -> Result<(), FrameError> {
    let length = u32::try_from(body_bytes)
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::TooLong {
            length_bytes: length,
            limit_bytes: FRAME_BYTES_MAX,
        });
    }
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind.0);
    Ok(())
}

/// A small frame, whose body `write` appends.
fn frame(out: &mut Vec<u8>, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(kind.0);
    write(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Pads a frame whose body so far has `body_bytes`.
fn pad(out: &mut Vec<u8>, aligned: bool, body_bytes: usize) {
    if aligned {
        let frame_bytes = HEADER_BYTES + body_bytes;
        let padding = frame_bytes.next_multiple_of(ALIGNMENT_BYTES) - frame_bytes;
        out.resize(out.len() + padding, 0);
    }
}
