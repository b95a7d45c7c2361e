//! A TCP stream of 1 MiB writes and reads, whose reader sums what it reads as 64-bit words: what
//! the kernel can move when nothing is made of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::error::BenchError;

use super::load::{PREBUILT_BYTES, Total, sum_of_words};
use super::peer::{Meter, Received};

/// Bytes of a write, and of a read at most.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// The bytes that are written, one chunk after the other, going round.
pub(super) fn chunks() -> Vec<Vec<u8>> {
    let chunk = |number: usize| {
        let words = (0..CHUNK_BYTES / 8).map(|word| (number * CHUNK_BYTES + word) as u64);
        let words = words.map(|word| word.wrapping_mul(0x5851_f42d_4c95_7f2d));
        words.flat_map(u64::to_le_bytes).collect()
    };
    (0..PREBUILT_BYTES / CHUNK_BYTES).map(chunk).collect()
}

/// What `count` chunks come to; a row is a word.
pub(super) fn total(chunks: &[Vec<u8>], count: u64) -> Total {
    let all = chunks.iter().cycle().take(count as usize);
    Total {
        rows: count * (CHUNK_BYTES / 8) as u64,
        sum: all.fold(0, |sum, chunk| sum.wrapping_add(sum_of_words(chunk))),
    }
}

/// Writes `count` chunks.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, chunks: &[Vec<u8>], count: u64) -> Result<Meter, BenchError> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let meter = Meter::start();
    for chunk in chunks.iter().cycle().take(count as usize) {
        stream.write_all(chunk)?;
    }
    Ok(meter)
}

/// Reads to the end.
///
/// # Errors
/// When the peer is gone.
pub(super) fn receive(listener: TcpListener) -> Result<Received, BenchError> {
    let (mut stream, _) = listener.accept()?;
    let meter = Meter::start();
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut held, mut total) = (0, Total::default());
    loop {
        let read = stream.read(&mut buffer[held..])?;
        if read == 0 {
            break;
        }
        let whole = (held + read) & !7;
        total.sum = total.sum.wrapping_add(sum_of_words(&buffer[..whole]));
        total.rows += whole as u64 / 8;
        // A read may end within a word.
        buffer.copy_within(whole..held + read, 0);
        held = held + read - whole;
    }
    Ok(meter.received(total))
}
