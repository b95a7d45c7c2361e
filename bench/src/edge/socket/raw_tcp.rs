//! A TCP stream of 1 MiB writes and reads, whose reader sums what it reads as 64-bit words: what
//! the kernel can move when nothing is made of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::backoff::Backoff;
use crate::error::BenchError;

use super::load::{PREBUILT_BYTES, Total, sum_of_words};
use super::peer::{Meter, Received};

/// Bytes of a write, and of a read at most.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// By which numbers are spread over all words.
const SPREAD: u64 = 0x5851_f42d_4c95_7f2d;

/// The bytes that are written, one chunk after the other, going round.
pub(super) fn chunks() -> Vec<Vec<u8>> {
    let chunk = |number: usize| {
        let words = (0..CHUNK_BYTES / 8).map(|word| (number * CHUNK_BYTES / 8 + word) as u64);
        let words = words.map(|word| word.wrapping_mul(SPREAD));
        words.flat_map(u64::to_le_bytes).collect()
    };
    (0..PREBUILT_BYTES / CHUNK_BYTES).map(chunk).collect()
}

/// What `count` chunks come to; a row is a word.
pub(super) fn total(chunks: &[Vec<u8>], count: u64) -> Total {
    let chunk = |chunk: &Vec<u8>| {
        let mut total = Total::default();
        add(&mut total, chunk);
        total
    };
    let totals: Vec<Total> = chunks.iter().map(chunk).collect();
    let all = totals.iter().cycle().take(count as usize);
    let mut total = Total::default();
    for chunk in all {
        total.rows += chunk.rows;
        total.sum = total.sum.wrapping_add(chunk.sum);
    }
    // One round of chunks is numbered without a break.
    total.in_rounds(&totals, count)
}

/// Adds whole words, which are looked at chunk by chunk, wherever a read has ended.
fn add(total: &mut Total, mut words: &[u8]) {
    while !words.is_empty() {
        let left = CHUNK_BYTES - total.rows as usize * 8 % CHUNK_BYTES;
        let (chunk, rest) = words.split_at(left.min(words.len()));
        words = rest;
        total.rows += chunk.len() as u64 / 8;
        total.sum = total.sum.wrapping_add(sum_of_words(chunk));
        if let (Some(first), Some(last)) = (chunk.first_chunk(), chunk.last_chunk()) {
            let (first, last) = (i64::from_le_bytes(*first), i64::from_le_bytes(*last));
            total.follow(first, last, SPREAD.cast_signed());
        }
    }
}

/// Writes `count` chunks. A call that could not go on sleeps, or is made again and again where
/// `polls` says so.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(
    to: SocketAddr,
    polls: bool,
    chunks: &[Vec<u8>],
    count: u64,
) -> Result<Meter, BenchError> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(polls)?;
    let meter = Meter::start();
    for chunk in chunks.iter().cycle().take(count as usize) {
        let mut left = &chunk[..];
        while !left.is_empty() {
            let written = again_and_again(|| stream.write(left))?;
            left = &left[written..];
        }
    }
    Ok(meter)
}

/// Reads to the end.
///
/// # Errors
/// When the peer is gone.
pub(super) fn receive(listener: &TcpListener, polls: bool) -> Result<Received, BenchError> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nonblocking(polls)?;
    let meter = Meter::start();
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut held, mut total) = (0, Total::default());
    loop {
        let read = again_and_again(|| stream.read(&mut buffer[held..]))?;
        if read == 0 {
            break;
        }
        let whole = (held + read) & !7;
        add(&mut total, &buffer[..whole]);
        // A read may end within a word.
        buffer.copy_within(whole..held + read, 0);
        held = held + read - whole;
    }
    Ok(meter.received(total))
}

/// Calls until there is something; a call that blocks is made once.
fn again_and_again(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let mut backoff = Backoff::light();
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => backoff.pause(),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_lost_or_out_of_order_are_found_however_they_are_read() {
        let chunks = chunks();
        let expected = total(&chunks, 5);
        let read = |order: &[usize]| {
            let bytes: Vec<u8> = order.iter().flat_map(|at| chunks[*at].clone()).collect();
            let mut total = Total::default();
            bytes.chunks(80_000).for_each(|read| add(&mut total, read));
            total.require(expected).is_ok()
        };
        assert!(read(&[0, 1, 2, 3, 0]));
        assert!(!read(&[0, 1, 2, 3]));
        assert!(!read(&[0, 2, 1, 3, 0]));
        assert!(!read(&[0, 1, 2, 0, 3]));
    }
}
