//! What a plain programmer would write: tokio, Arrow's stream format with its schema once, a
//! write buffer of 256 KiB, and a decoder over buffers in which every message is aligned.

use std::net::{SocketAddr, TcpListener};

use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as AsyncListener, TcpStream};

use crate::error::BenchError;

use super::load::{Load, Prebuilt, Total};
use super::peer::{Meter, Received};

const WRITE_BUFFER_BYTES: usize = 256 << 10;
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Sends `count` batches and the end of the stream.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(
    to: SocketAddr,
    load: Load,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Meter, BenchError> {
    runtime()?.block_on(async {
        let mut stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let meter = Meter::start();
        let buffer = Vec::with_capacity(2 * WRITE_BUFFER_BYTES);
        let mut writer = StreamWriter::try_new(buffer, &load.schema())?;
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
pub(super) fn receive(listener: TcpListener) -> Result<Received, BenchError> {
    listener.set_nonblocking(true)?;
    runtime()?.block_on(async {
        let listener = AsyncListener::from_std(listener)?;
        let (mut stream, _) = listener.accept().await?;
        let meter = Meter::start();
        let mut decoder = StreamDecoder::new();
        let mut total = Total::default();
        let mut held: Vec<u8> = Vec::with_capacity(8);
        loop {
            // Messages are multiples of 8 bytes: as long as buffers begin at one, so do they.
            let mut bytes = Vec::with_capacity(READ_BUFFER_BYTES);
            bytes.append(&mut held);
            if stream.read_buf(&mut bytes).await? == 0 {
                break;
            }
            held.extend_from_slice(&bytes[bytes.len() & !7..]);
            bytes.truncate(bytes.len() & !7);
            let mut buffer = Buffer::from(bytes);
            while let Some(batch) = decoder.decode(&mut buffer)? {
                total.add(&batch);
            }
        }
        decoder.finish()?;
        Ok(meter.received(total))
    })
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
