//! From messages to bytes.

use ringway_netio::frame::{FrameError, Kind, encode};

use super::decode::kinds;
use super::message::{Fault, JobEnd, Message};
use super::{Hello, MESSAGE_BYTES_MAX, TEXT_BYTES_MAX};

/// Marks a control session.
pub(super) const MAGIC: [u8; 4] = *b"RWCT";

/// The version of the control protocol.
pub(super) const VERSION: u8 = 1;

/// Appends a message.
///
/// # Errors
/// [`FrameError::TooLong`]: the reports or the part in it are longer than any peer takes.
pub(super) fn message(out: &mut Vec<u8>, message: &Message) -> Result<(), FrameError> {
    let mut body = Vec::new();
    let kind = write(&mut body, message);
    if body.len() >= MESSAGE_BYTES_MAX as usize {
        return Err(FrameError::TooLong {
            length_bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
            limit_bytes: MESSAGE_BYTES_MAX,
        });
    }
    encode::opaque_header(out, kind, body.len())?;
    out.extend_from_slice(&body);
    Ok(())
}

fn write(out: &mut Vec<u8>, message: &Message) -> Kind {
    match message {
        Message::Hello(own) => hello(out, own),
        Message::Refused(reason) => text(out, reason),
        Message::Heartbeat | Message::Opened | Message::Start | Message::ReportWanted => {}
        Message::Open(addresses) => {
            out.extend_from_slice(&(addresses.len() as u16).to_be_bytes());
            addresses.iter().for_each(|address| text(out, address));
        }
        Message::Stop(way) => out.push(*way as u8),
        Message::Cancel(cause) => out.push(*cause as u8),
        Message::Failure(failed) => fault(out, failed),
        Message::Finished(end, report) => {
            out.push(*end as u8);
            out.extend_from_slice(report);
        }
        Message::Over(end) => job_end(out, end),
        Message::Report(report) => out.extend_from_slice(report),
        Message::Trigger(barrier) => {
            out.extend_from_slice(&barrier.id.to_be_bytes());
            out.push(barrier.mode.0);
            out.push(u8::from(barrier.terminal));
        }
        Message::Acknowledge { id, taken, part } => {
            out.extend_from_slice(&id.to_be_bytes());
            out.push(u8::from(*taken));
            out.extend_from_slice(part);
        }
        Message::Abort(id) | Message::Commit(id) | Message::Committed(id) => {
            out.extend_from_slice(&id.to_be_bytes());
        }
    }
    kind_of(message)
}

fn kind_of(message: &Message) -> Kind {
    match message {
        Message::Hello(_) => kinds::HELLO,
        Message::Refused(_) => kinds::REFUSED,
        Message::Heartbeat => kinds::HEARTBEAT,
        Message::Open(_) => kinds::OPEN,
        Message::Opened => kinds::OPENED,
        Message::Start => kinds::START,
        Message::Stop(_) => kinds::STOP,
        Message::Cancel(_) => kinds::CANCEL,
        Message::Failure(_) => kinds::FAILURE,
        Message::Finished(..) => kinds::FINISHED,
        Message::Over(_) => kinds::OVER,
        Message::ReportWanted => kinds::REPORT_WANTED,
        Message::Report(_) => kinds::REPORT,
        Message::Trigger(_) => kinds::TRIGGER,
        Message::Acknowledge { .. } => kinds::ACKNOWLEDGE,
        Message::Abort(_) => kinds::ABORT,
        Message::Commit(_) => kinds::COMMIT,
        Message::Committed(_) => kinds::COMMITTED,
    }
}

fn hello(out: &mut Vec<u8>, hello: &Hello) {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, 0]);
    out.extend_from_slice(&hello.data_port.to_be_bytes());
    out.extend_from_slice(&hello.plan.to_be_bytes());
    out.extend_from_slice(&hello.run.to_be_bytes());
    out.extend_from_slice(&hello.attempt.to_be_bytes());
    out.extend_from_slice(&hello.process.to_be_bytes());
    out.extend_from_slice(&hello.processes.to_be_bytes());
    text(out, &hello.job);
    text(out, &hello.version);
}

fn fault(out: &mut Vec<u8>, fault: &Fault) {
    out.extend_from_slice(&fault.process.to_be_bytes());
    out.push(u8::from(fault.is_cause));
    text(out, &fault.message);
}

fn job_end(out: &mut Vec<u8>, end: &JobEnd) {
    match end {
        JobEnd::Ended => out.push(0),
        JobEnd::Stopped => out.push(1),
        JobEnd::Cancelled(cause) => out.extend_from_slice(&[2, *cause as u8]),
        JobEnd::Failed(failed) => {
            out.push(3);
            fault(out, failed);
        }
    }
}

/// A text with its length ahead, cut where it is too long.
fn text(out: &mut Vec<u8>, text: &str) {
    let cut = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    out.extend_from_slice(&(cut.len() as u16).to_be_bytes());
    out.extend_from_slice(cut.as_bytes());
}
