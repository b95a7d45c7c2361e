//! Messages there and back over streams of bytes, each when the one before is back.

use std::io::{self, Read, Write};

use crate::error::BenchError;

use super::road::Times;

/// Sends messages of so many bytes, and waits for each to come back.
///
/// # Errors
/// When the peer is gone, or another message comes back.
pub(crate) fn ask<const BYTES: usize>(
    mut out: impl Write,
    mut back: impl Read,
    count: u64,
) -> Result<Times, BenchError> {
    let (mut message, mut answer) = ([0; BYTES], [0; BYTES]);
    let mut times = Times::begin();
    for number in 0..count {
        message[..8].copy_from_slice(&number.to_le_bytes());
        out.write_all(&message)?;
        if !read_whole(&mut back, &mut answer)? {
            return Err(BenchError::new("the other process has ended"));
        }
        times.is_back();
        if answer != message {
            return Err(BenchError::new(format!("another answer to {number} came")));
        }
    }
    Ok(times)
}

/// Sends messages of so many bytes back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(crate) fn answer<const BYTES: usize>(
    mut there: impl Read,
    mut back: impl Write,
) -> Result<u64, BenchError> {
    let mut message = [0; BYTES];
    let mut count = 0;
    while read_whole(&mut there, &mut message)? {
        back.write_all(&message)?;
        count += 1;
    }
    Ok(count)
}

/// Reads a message; false where the stream has ended.
fn read_whole(stream: &mut impl Read, message: &mut [u8]) -> io::Result<bool> {
    let read = stream.read(message)?;
    if read == 0 {
        return Ok(false);
    }
    stream.read_exact(&mut message[read..])?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn messages_come_back_and_another_answer_is_found() {
        let mut asked = Vec::new();
        let answers: Vec<u8> = (0..3_u64).flat_map(u64::to_le_bytes).collect();
        ask::<8>(&mut asked, Cursor::new(&answers), 3).unwrap();
        assert_eq!(asked, answers);
        let mut back = Vec::new();
        assert_eq!(answer::<8>(Cursor::new(&asked), &mut back).unwrap(), 3);
        assert_eq!(back, asked);
        let swapped = [&answers[8..16], &answers[..8]].concat();
        let error = ask::<8>(Vec::new(), Cursor::new(swapped), 2);
        assert!(error.is_err());
        let lost = ask::<8>(Vec::new(), Cursor::new(&answers[..8]), 2);
        assert!(lost.is_err());
    }
}
