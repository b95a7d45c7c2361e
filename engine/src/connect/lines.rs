//! Reads text line by line, in chunks, with the number of each line.

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// The longest line that is read, in bytes: what has no line ends is not a text file, and
/// must not fill memory.
pub(super) const LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes of text after which a chunk ends though there is room for more lines.
const CHUNK_BYTES: usize = 4 << 20;

/// Some lines of a file that are not blank.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    text: Vec<u8>,
    lines: Vec<Line>,
}

/// One line of a chunk.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// Whether it was longer than [`LINE_BYTES_MAX`] and has been cut.
    pub(super) is_cut: bool,
    range: Range<usize>,
}

impl Chunk {
    /// Its lines, in order.
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The text of `line`, with its line end if it has one.
    pub(super) fn text(&self, line: &Line) -> &[u8] {
        &self.text[line.range.clone()]
    }
}

/// Reads lines from `input`. A line ends with a line feed, or with the file; a carriage
/// return before it is white space. Blank lines count as lines and are left out.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    input: R,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            number: 0,
            bytes: 0,
        }
    }

    /// Reads up to `lines_max` lines into `chunk`, which is emptied first. No lines: the end.
    pub(super) fn read(&mut self, chunk: &mut Chunk, lines_max: usize) -> io::Result<()> {
        chunk.text.clear();
        chunk.lines.clear();
        while chunk.lines.len() < lines_max && chunk.text.len() < CHUNK_BYTES {
            let start = chunk.text.len();
            let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64);
            let read = limited.read_until(b'\n', &mut chunk.text)?;
            if read == 0 {
                break;
            }
            self.number += 1;
            self.bytes += read as u64;
            let mut is_cut = false;
            if chunk.text.last() != Some(&b'\n') && read == LINE_BYTES_MAX {
                let skipped = self.input.skip_until(b'\n')?;
                self.bytes += skipped as u64;
                is_cut = skipped > 0;
            }
            if self.number == 1 && chunk.text.starts_with(BYTE_ORDER_MARK) {
                chunk.text[..BYTE_ORDER_MARK.len()].fill(b' ');
            }
            if chunk.text[start..].iter().all(u8::is_ascii_whitespace) {
                chunk.text.truncate(start);
                continue;
            }
            chunk.lines.push(Line {
                number: self.number,
                is_cut,
                range: start..chunk.text.len(),
            });
        }
        Ok(())
    }

    /// Bytes read since the last call.
    pub(super) fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }
}

/// Some editors write it at the start of a file; it is no part of the text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8], lines_max: usize) -> Vec<(u64, String)> {
        let mut reader = LineReader::new(text);
        let mut chunk = Chunk::default();
        let mut seen = Vec::new();
        loop {
            reader.read(&mut chunk, lines_max).unwrap();
            if chunk.lines().is_empty() {
                assert_eq!(reader.take_bytes(), text.len() as u64);
                return seen;
            }
            for line in chunk.lines() {
                let text = String::from_utf8_lossy(chunk.text(line));
                seen.push((line.number, text.trim().to_owned()));
            }
        }
    }

    #[test]
    fn lines_keep_their_numbers_whatever_ends_them() {
        let text = b"\xef\xbb\xbfa\r\n\r\n  \nb\nlast";
        let expected = [(1, "a"), (4, "b"), (5, "last")].map(|(n, t)| (n, t.to_owned()));
        for lines_max in [1, 2, 100] {
            let seen = lines_of(text, lines_max);
            assert_eq!(seen.len(), 3);
            assert_eq!(seen[1..], expected[1..]);
            assert_eq!(seen[0].1.trim(), "a");
        }
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_is_read() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 10];
        text.extend_from_slice(b"\nnext\n");
        let mut reader = LineReader::new(&text[..]);
        let mut chunk = Chunk::default();
        reader.read(&mut chunk, 1).unwrap();
        assert!(chunk.lines()[0].is_cut);
        reader.read(&mut chunk, 1).unwrap();
        let next = &chunk.lines()[0];
        assert_eq!((next.number, chunk.text(next)), (2, &b"next\n"[..]));
    }
}
