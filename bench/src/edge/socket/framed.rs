//! The first thing that one would write: tokio, and every batch as an Arrow stream of its own, with
//! its schema, behind its length; one write a batch.

use std::net::{SocketAddr, TcpListener};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as AsyncListener, TcpStream};

use crate::error::BenchError;
use crate::latency::ours::require_answer;
use crate::latency::road::Times;

use super::coalesced::runtime;
use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

/// Bytes of the length of a frame, which come first.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Sends `count` batches and the end of the stream.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    runtime()?.block_on(async {
        let mut stream = connect(to).await?;
        let meter = Meter::start();
        for batch in prebuilt.batches(count) {
            write(&mut stream, &batch).await?;
        }
        stream.shutdown().await?;
        Ok(meter)
    })
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or sends something else.
pub(super) fn receive(listener: TcpListener, mut tally: Tally) -> Result<Received, BenchError> {
    runtime()?.block_on(async {
        let mut stream = accept(listener).await?;
        let meter = Meter::start();
        while let Some(batch) = read(&mut stream).await? {
            tally.add(&batch);
        }
        Ok(meter.received(tally.total()))
    })
}

/// Sends batches, one after the other, and waits for each to come back.
///
/// # Errors
/// When the peer is gone, or another batch comes back.
pub(crate) fn ask(to: SocketAddr, asked: &[RecordBatch], count: u64) -> Result<Times, BenchError> {
    runtime()?.block_on(async {
        let mut stream = connect(to).await?;
        let mut times = Times::begin();
        for (number, batch) in (0..count).zip(asked.iter().cycle()) {
            write(&mut stream, batch).await?;
            let answer = read(&mut stream).await?;
            times.is_back();
            require_answer(number, batch, answer.as_ref())?;
        }
        Ok(times)
    })
}

/// Sends batches back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone, or sends something else.
pub(crate) fn answer(listener: TcpListener) -> Result<u64, BenchError> {
    runtime()?.block_on(async {
        let mut stream = accept(listener).await?;
        let mut count = 0;
        while let Some(batch) = read(&mut stream).await? {
            write(&mut stream, &batch).await?;
            count += 1;
        }
        Ok(count)
    })
}

async fn connect(to: SocketAddr) -> Result<TcpStream, BenchError> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn accept(listener: TcpListener) -> Result<TcpStream, BenchError> {
    listener.set_nonblocking(true)?;
    let (stream, _) = AsyncListener::from_std(listener)?.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn write(stream: &mut TcpStream, batch: &RecordBatch) -> Result<(), BenchError> {
    let mut frame = encoded(batch, vec![0; LENGTH_BYTES])?;
    let length = u32::try_from(frame.len() - LENGTH_BYTES)?;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(stream.write_all(&frame).await?)
}

async fn read(stream: &mut TcpStream) -> Result<Option<RecordBatch>, BenchError> {
    let mut length = [0; LENGTH_BYTES];
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    // The peer is this program, and is trusted.
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut frame).await?;
    decoded(Buffer::from(frame)).map(Some)
}

/// A batch as a stream of its own, behind what `to` has already.
///
/// # Errors
/// When it can't be one.
pub(super) fn encoded(batch: &RecordBatch, to: Vec<u8>) -> Result<Vec<u8>, BenchError> {
    let mut writer = StreamWriter::try_new(to, batch.schema_ref())?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

/// The batch that such a stream has.
///
/// # Errors
/// When it has none.
pub(super) fn decoded(mut stream: Buffer) -> Result<RecordBatch, BenchError> {
    let batch = StreamDecoder::new().decode(&mut stream)?;
    batch.ok_or_else(|| BenchError::new("a frame without a batch came"))
}

#[cfg(test)]
mod tests {
    use super::super::load::{Kind, Load};
    use super::*;

    #[test]
    fn a_batch_comes_out_of_its_frame_as_it_went_in() {
        for kind in [Kind::Int64, Kind::String100] {
            let batch = Load { kind, rows: 5 }.prebuilt().batches(1).next().unwrap();
            let frame = encoded(&batch, Vec::new()).unwrap();
            assert_eq!(decoded(Buffer::from(frame)).unwrap(), batch);
        }
        assert!(decoded(Buffer::from(Vec::<u8>::new())).is_err());
    }
}
