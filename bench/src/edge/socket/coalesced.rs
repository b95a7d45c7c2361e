//! What a plain programmer would write: tokio, Arrow's stream format with its schema once, a
//! write buffer of 256 KiB, and a decoder over buffers in which every message is aligned.

use std::net::{SocketAddr, TcpListener};

use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::root_as_message;
use arrow::ipc::writer::StreamWriter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as AsyncListener, TcpStream};

use crate::error::BenchError;

use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

const WRITE_BUFFER_BYTES: usize = 256 << 10;
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Sends `count` batches and the end of the stream.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    runtime()?.block_on(async {
        let mut stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let meter = Meter::start();
        let buffer = Vec::with_capacity(2 * WRITE_BUFFER_BYTES);
        let mut writer = StreamWriter::try_new(buffer, &prebuilt.schema())?;
        for batch in prebuilt.batches(count) {
            writer.write(&batch)?;
            if writer.get_ref().len() >= WRITE_BUFFER_BYTES {
                stream.write_all(writer.get_ref()).await?;
                writer.get_mut().clear();
            }
        }
        writer.finish()?;
        stream.write_all(writer.get_ref()).await?;
        stream.shutdown().await?;
        Ok(meter)
    })
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or sends something else.
pub(super) fn receive(listener: TcpListener, mut tally: Tally) -> Result<Received, BenchError> {
    listener.set_nonblocking(true)?;
    runtime()?.block_on(async {
        let listener = AsyncListener::from_std(listener)?;
        let (mut stream, _) = listener.accept().await?;
        let meter = Meter::start();
        let mut decoder = StreamDecoder::new();
        let mut messages = Messages::default();
        let mut bytes: Vec<u8> = Vec::with_capacity(READ_BUFFER_BYTES);
        while stream.read_buf(&mut bytes).await? > 0 {
            // What the decoder is given in part it copies, so it is given whole messages, which
            // begin where a buffer does or behind others, and so are aligned.
            let (whole, next_bytes) = messages.whole(&bytes)?;
            let rest = &bytes[whole..];
            if whole == 0 {
                bytes.reserve(next_bytes.saturating_sub(rest.len()));
                continue;
            }
            let mut next = Vec::with_capacity(READ_BUFFER_BYTES.max(next_bytes));
            next.extend_from_slice(rest);
            bytes.truncate(whole);
            let mut buffer = Buffer::from(std::mem::replace(&mut bytes, next));
            while let Some(batch) = decoder.decode(&mut buffer)? {
                tally.add(&batch);
            }
        }
        while let Some(batch) = decoder.decode(&mut Buffer::from(std::mem::take(&mut bytes)))? {
            tally.add(&batch);
        }
        decoder.finish()?;
        Ok(meter.received(tally.total()))
    })
}

/// Finds where messages end.
#[derive(Default)]
struct Messages {
    /// The metadata of the last one, and its length with its body: the next is mostly the same.
    last: (Vec<u8>, usize),
}

impl Messages {
    /// How many of the bytes are whole messages, and how many the one behind them has, if that
    /// is known.
    ///
    /// # Errors
    /// When there is no message.
    fn whole(&mut self, bytes: &[u8]) -> Result<(usize, usize), BenchError> {
        let mut whole = 0;
        loop {
            let length = self.next(&bytes[whole..])?.unwrap_or_default();
            if length == 0 || whole + length > bytes.len() {
                return Ok((whole, length));
            }
            whole += length;
        }
    }

    /// The length of the message that `bytes` begin with, once its metadata is there.
    fn next(&mut self, bytes: &[u8]) -> Result<Option<usize>, BenchError> {
        let Some((prefix, rest)) = bytes.split_first_chunk::<8>() else {
            return Ok(None);
        };
        let [.., a, b, c, d] = *prefix;
        let Some(metadata) = rest.get(..u32::from_le_bytes([a, b, c, d]) as usize) else {
            return Ok(None);
        };
        if metadata.is_empty() {
            return Ok(Some(prefix.len()));
        }
        if metadata != self.last.0 {
            let message = root_as_message(metadata);
            let message = message.map_err(|error| BenchError::new(error.to_string()))?;
            let body = usize::try_from(message.bodyLength());
            let body = body.map_err(|_| BenchError::new("a body of less than nothing"))?;
            self.last = (metadata.to_vec(), prefix.len() + metadata.len() + body);
        }
        Ok(Some(self.last.1))
    }
}

/// Everything on the thread that asks for it.
///
/// # Errors
/// When no descriptor is left.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    Ok(runtime?)
}
