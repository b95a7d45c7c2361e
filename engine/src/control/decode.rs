//! From bytes to messages.

use ringway_netio::frame::Kind;

use crate::element::{Barrier, BarrierMode};

use super::encode::{MAGIC, VERSION};
use super::message::{CancelCause, Fault, JobEnd, Message, ProcessEnd, StopWay};
use super::{Hello, PROCESSES_MAX, TEXT_BYTES_MAX};

/// The kinds of control messages. None of them is a kind of a data edge.
pub(super) mod kinds {
    use ringway_netio::frame::Kind;

    pub(crate) const HELLO: Kind = Kind(160);
    pub(crate) const REFUSED: Kind = Kind(161);
    pub(crate) const HEARTBEAT: Kind = Kind(162);
    pub(crate) const OPEN: Kind = Kind(163);
    pub(crate) const OPENED: Kind = Kind(164);
    pub(crate) const START: Kind = Kind(165);
    pub(crate) const STOP: Kind = Kind(166);
    pub(crate) const CANCEL: Kind = Kind(167);
    pub(crate) const FAILURE: Kind = Kind(168);
    pub(crate) const FINISHED: Kind = Kind(169);
    pub(crate) const OVER: Kind = Kind(170);
    pub(crate) const REPORT_WANTED: Kind = Kind(171);
    pub(crate) const REPORT: Kind = Kind(172);
    pub(crate) const TRIGGER: Kind = Kind(176);
    pub(crate) const ACKNOWLEDGE: Kind = Kind(177);
    pub(crate) const ABORT: Kind = Kind(178);
    pub(crate) const COMMIT: Kind = Kind(179);
    pub(crate) const COMMITTED: Kind = Kind(180);
}

/// The message of this kind and body; nothing where the kind has no meaning.
///
/// # Errors
/// What is wrong with the body.
pub(super) fn message(kind: Kind, body: &[u8]) -> Result<Option<Message>, String> {
    let mut fields = Fields { rest: body };
    let message = parse(kind, &mut fields);
    message.map_err(|problem| format!("message {} has {problem}", kind.0))
}

fn parse(kind: Kind, fields: &mut Fields<'_>) -> Result<Option<Message>, &'static str> {
    Ok(Some(match kind {
        kinds::HELLO => Message::Hello(hello(fields)?),
        kinds::REFUSED => Message::Refused(fields.text()?),
        kinds::HEARTBEAT => Message::Heartbeat,
        kinds::OPEN => {
            let count = usize::from(fields.u16()?);
            if count > PROCESSES_MAX {
                return Err("too many addresses");
            }
            let addresses = (0..count).map(|_| fields.text());
            Message::Open(addresses.collect::<Result<_, _>>()?)
        }
        kinds::OPENED => Message::Opened,
        kinds::START => Message::Start,
        kinds::STOP => Message::Stop(fields.one_of(&[StopWay::End, StopWay::Stop])?),
        kinds::CANCEL => Message::Cancel(cancel_cause(fields)?),
        kinds::FAILURE => Message::Failure(fault(fields)?),
        kinds::FINISHED => {
            let ends = [
                ProcessEnd::Ended,
                ProcessEnd::Stopped,
                ProcessEnd::Cancelled,
                ProcessEnd::Failed,
            ];
            Message::Finished(fields.one_of(&ends)?, fields.rest().to_vec())
        }
        kinds::OVER => Message::Over(match fields.u8()? {
            0 => JobEnd::Ended,
            1 => JobEnd::Stopped,
            2 => JobEnd::Cancelled(cancel_cause(fields)?),
            3 => JobEnd::Failed(fault(fields)?),
            _ => return Err("a number without a meaning"),
        }),
        kinds::REPORT_WANTED => Message::ReportWanted,
        kinds::REPORT => Message::Report(fields.rest().to_vec()),
        kinds::TRIGGER => Message::Trigger(Barrier {
            id: fields.u64()?,
            mode: BarrierMode(fields.u8()?),
            terminal: fields.flag()?,
        }),
        kinds::ACKNOWLEDGE => Message::Acknowledge {
            id: fields.u64()?,
            taken: fields.flag()?,
            part: fields.rest().to_vec(),
        },
        kinds::ABORT => Message::Abort(fields.u64()?),
        kinds::COMMIT => Message::Commit(fields.u64()?),
        kinds::COMMITTED => Message::Committed(fields.u64()?),
        _ => return Ok(None),
    }))
}

fn hello(fields: &mut Fields<'_>) -> Result<Hello, &'static str> {
    if fields.array()? != MAGIC {
        return Err("another magic: it is no control session");
    }
    if fields.u8()? != VERSION {
        return Err("another version of the protocol: run the same version of ringway everywhere");
    }
    fields.u8()?;
    Ok(Hello {
        data_port: fields.u16()?,
        plan: fields.u64()?,
        run: u128::from_be_bytes(fields.array()?),
        attempt: fields.u32()?,
        process: fields.u32()?,
        processes: fields.u32()?,
        job: fields.text()?,
        version: fields.text()?,
    })
}

fn fault(fields: &mut Fields<'_>) -> Result<Fault, &'static str> {
    Ok(Fault {
        process: fields.u32()?,
        is_cause: fields.flag()?,
        message: fields.text()?,
    })
}

fn cancel_cause(fields: &mut Fields<'_>) -> Result<CancelCause, &'static str> {
    fields.one_of(&[
        CancelCause::Asked,
        CancelCause::Interrupt,
        CancelCause::Terminate,
        CancelCause::Failure,
    ])
}

/// The fields of a body, front to back. What a newer peer appends is left.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or("too few bytes for its fields")?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, &'static str> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, &'static str> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, &'static str> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, &'static str> {
        self.array().map(u64::from_be_bytes)
    }

    fn flag(&mut self) -> Result<bool, &'static str> {
        self.one_of(&[false, true])
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> Result<T, &'static str> {
        let number = usize::from(self.u8()?);
        let value = values.get(number).copied();
        value.ok_or("a number without a meaning")
    }

    fn text(&mut self) -> Result<String, &'static str> {
        let bytes = usize::from(self.u16()?);
        if bytes > TEXT_BYTES_MAX {
            return Err("a text that is too long");
        }
        let text = self.take(bytes)?.to_vec();
        String::from_utf8(text).map_err(|_| "a text that is not UTF-8")
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
