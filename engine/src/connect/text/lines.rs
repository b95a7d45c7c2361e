//! Reads text line by line, in chunks, with the number of each line.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use crate::connect::text::input::TextInput;

/// The longest line that is read, in bytes: what has no line ends is not a text file, and
/// must not fill memory.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 20;

/// Bytes of text after which a chunk ends though there is room for more lines.
const CHUNK_BYTES: usize = 4 << 20;

/// Some lines of a file that are not blank.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    text: Vec<u8>,
    lines: Vec<Line>,
}

/// One line of a chunk, or several lines that quotes hold together.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The number of its first line in the file, from 1.
    pub(crate) number: u64,
    /// Whether it was longer than [`LINE_BYTES_MAX`] and has been cut.
    pub(crate) is_cut: bool,
    range: Range<usize>,
}

impl Chunk {
    /// Its lines, in order.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The text of the line of this number, empty where there is none.
    pub(crate) fn text_of(&self, number: u64) -> &[u8] {
        let index = self.lines.binary_search_by_key(&number, |line| line.number);
        index.map_or(&[], |index| self.text(&self.lines[index]))
    }

    /// The text of `line`, with its line end if it has one.
    pub(crate) fn text(&self, line: &Line) -> &[u8] {
        &self.text[line.range.clone()]
    }
}

/// What is between and around the values of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) quote: u8,
    pub(crate) delimiter: u8,
    /// Whether quotes hold a line end as part of a value.
    pub(crate) hold_line_ends: bool,
}

/// What lines are read from.
pub(crate) trait LineInput: BufRead {
    /// Whether another line can be had without waiting for someone to write it.
    fn is_ready(&self) -> bool {
        true
    }
}

impl LineInput for TextInput {
    fn is_ready(&self) -> bool {
        Self::is_ready(self)
    }
}

/// Reads lines from `input`. A line ends with a line feed, or with the file; a carriage
/// return before it is white space. Blank lines count as lines and are left out: those of white
/// space, none of which is a mark.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    input: R,
    marks: Option<Marks>,
    /// The number of the last line that was read, from where it begins to read.
    number: u64,
    /// Bytes of the text that were read, those before where it begins to read included.
    offset: u64,
    /// Bytes at the start of the text that are still to be left out.
    ahead_bytes: u64,
    /// Lines that begin there or later are not read.
    end: Option<u64>,
    /// Whether the rest of a line is still to be skipped: one that was cut, or in which it began.
    is_skipping: bool,
    /// Where the first line begins of those that it numbers.
    numbered_from: u64,
}

impl<R: LineInput> LineReader<R> {
    /// Reads from the start of the text, whose lines have `marks`, if any.
    pub(crate) const fn new(input: R, marks: Option<Marks>) -> Self {
        Self {
            input,
            marks,
            number: 0,
            offset: 0,
            ahead_bytes: 0,
            end: None,
            is_skipping: false,
            numbered_from: 0,
        }
    }

    /// Reads the lines that begin at or after the byte `from` of the text: `input` is to be at its
    /// byte `at`, which is at least one before.
    pub(crate) fn starting(input: R, marks: Option<Marks>, at: u64, from: u64) -> Self {
        assert!(at < from, "the byte before a line tells that it begins");
        Self {
            offset: at,
            ahead_bytes: from - 1 - at,
            // A line begins after a line end, and so with the rest of one that is skipped.
            is_skipping: true,
            ..Self::new(input, marks)
        }
    }

    /// Leaves out the lines that begin at or after the byte `end` of the text.
    pub(crate) const fn until(mut self, end: u64) -> Self {
        self.end = Some(end);
        self
    }

    /// Bytes of the text that were read: the next line begins there, or is gone on with.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the line begins that it says is the first.
    pub(crate) const fn numbered_from(&self) -> u64 {
        self.numbered_from
    }

    /// What is read from.
    pub(crate) const fn input(&self) -> &R {
        &self.input
    }

    /// Reads up to `lines_max` lines into `chunk`, which is emptied first. No lines: the end.
    /// Where more would have to be waited for, it ends with those that there are.
    pub(crate) fn read(&mut self, chunk: &mut Chunk, lines_max: usize) -> io::Result<()> {
        while self.read_some(chunk, lines_max)? && chunk.lines.is_empty() {}
        Ok(())
    }

    /// As `read`, but also comes back without lines before the end, after so much text that has
    /// none. False at the end.
    pub(crate) fn read_some(&mut self, chunk: &mut Chunk, lines_max: usize) -> io::Result<bool> {
        chunk.text.clear();
        chunk.lines.clear();
        if self.ahead_bytes > 0 && !self.leave_out_some()? {
            return Ok(true);
        }
        if self.is_skipping && !self.skip_some()? {
            return Ok(true);
        }
        let mut blank_bytes = 0;
        while chunk.lines.len() < lines_max && chunk.text.len() + blank_bytes < CHUNK_BYTES {
            if !chunk.lines.is_empty() && !self.input.is_ready() {
                break;
            }
            if self.end.is_some_and(|end| self.offset >= end) {
                return Ok(!chunk.lines.is_empty());
            }
            let start = chunk.text.len();
            let Some(mut is_cut) = self.append_line(&mut chunk.text)? else {
                return Ok(!chunk.lines.is_empty());
            };
            let number = self.number;
            if !is_cut && is_blank(&chunk.text[start..], self.marks) {
                blank_bytes += chunk.text.len() - start;
                chunk.text.truncate(start);
                continue;
            }
            if let Some(marks) = self.marks
                && marks.hold_line_ends
                && !is_cut
            {
                is_cut = self.append_quoted(marks, &mut chunk.text, start)?;
            }
            chunk.lines.push(Line {
                number,
                is_cut,
                range: start..chunk.text.len(),
            });
            if self.is_skipping {
                break;
            }
        }
        Ok(true)
    }

    /// Appends one line to `text` and tells whether it was cut; none at the end. The rest of a
    /// line that was cut is still to be skipped.
    fn append_line(&mut self, text: &mut Vec<u8>) -> io::Result<Option<bool>> {
        let start = text.len();
        let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64);
        let read = limited.read_until(b'\n', text)?;
        if read == 0 {
            return Ok(None);
        }
        let is_first = self.offset == 0;
        self.number += 1;
        self.offset += read as u64;
        if is_first && text[start..].starts_with(BYTE_ORDER_MARK) {
            text.drain(start..start + BYTE_ORDER_MARK.len());
        }
        let is_whole = text.last() == Some(&b'\n') || read < LINE_BYTES_MAX;
        self.is_skipping = !is_whole && !self.input.fill_buf()?.is_empty();
        Ok(Some(self.is_skipping))
    }

    /// Skips some of the rest of a line that was cut, and tells whether that was all of it.
    fn skip_some(&mut self) -> io::Result<bool> {
        let mut skipped = 0;
        while skipped < CHUNK_BYTES {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            let is_over = end.is_some() || buffer.is_empty();
            self.input.consume(length);
            self.offset += length as u64;
            skipped += length;
            if is_over {
                self.is_skipping = false;
                if self.number == 0 {
                    self.numbered_from = self.offset;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves out some of what is before the text that is to be read, and tells whether that was
    /// all of it. Text that ends before has changed, which others find.
    fn leave_out_some(&mut self) -> io::Result<bool> {
        let part = self.ahead_bytes.min(CHUNK_BYTES as u64);
        let taken = io::copy(&mut (&mut self.input).take(part), &mut io::sink())?;
        self.offset += taken;
        self.ahead_bytes = if taken < part {
            0
        } else {
            self.ahead_bytes - part
        };
        Ok(self.ahead_bytes == 0)
    }

    /// Appends the lines that belong to the one at `start`, whose quotes are open.
    fn append_quoted(
        &mut self,
        marks: Marks,
        text: &mut Vec<u8>,
        start: usize,
    ) -> io::Result<bool> {
        let mut place = Place::FieldStart;
        let mut seen = start;
        loop {
            place = place.after(&text[seen..], marks);
            seen = text.len();
            if place != Place::Quoted {
                return Ok(false);
            }
            match self.append_line(text)? {
                None => return Ok(false),
                Some(false) if text.len() - start <= LINE_BYTES_MAX => {}
                Some(_) => return Ok(true),
            }
        }
    }
}

/// Where in a row of delimited values a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote within quotes, which ends them unless another follows.
    Closing,
}

impl Place {
    fn after(self, text: &[u8], marks: Marks) -> Self {
        let Marks {
            quote, delimiter, ..
        } = marks;
        if self != Self::Quoted && !text.contains(&quote) {
            return Self::Plain;
        }
        text.iter().fold(self, |place, &byte| match place {
            Self::FieldStart | Self::Closing if byte == quote => Self::Quoted,
            Self::Quoted if byte == quote => Self::Closing,
            Self::Quoted => Self::Quoted,
            _ if byte == delimiter => Self::FieldStart,
            _ => Self::Plain,
        })
    }
}

/// Whether nothing is in the line `text`. White space that is a mark is values without anything
/// in them.
fn is_blank(text: &[u8], marks: Option<Marks>) -> bool {
    let is_mark =
        |byte: u8| marks.is_some_and(|marks| byte == marks.delimiter || byte == marks.quote);
    let mut bytes = text.iter();
    bytes.all(|byte| byte.is_ascii_whitespace() && !is_mark(*byte))
}

/// Some editors write it at the start of a file; it is no part of the text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    impl LineInput for &[u8] {}
    impl LineInput for io::BufReader<&[u8]> {}

    fn lines_of(text: &[u8], lines_max: usize) -> Vec<(u64, String)> {
        let mut reader = LineReader::new(text, None);
        let mut chunk = Chunk::default();
        let mut seen = Vec::new();
        loop {
            reader.read(&mut chunk, lines_max).unwrap();
            if chunk.lines().is_empty() {
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
    fn quotes_hold_lines_together() {
        let text = b"a,\"b\nc\"\n\n\"x\"\"\n\",y\nq\"r,s\n\"open,\nto the end";
        let marks = Marks {
            quote: b'"',
            delimiter: b',',
            hold_line_ends: true,
        };
        for lines_max in [1, 100] {
            let mut reader = LineReader::new(&text[..], Some(marks));
            let mut chunk = Chunk::default();
            let mut seen = Vec::new();
            loop {
                reader.read(&mut chunk, lines_max).unwrap();
                if chunk.lines().is_empty() {
                    break;
                }
                for line in chunk.lines() {
                    let text = String::from_utf8_lossy(chunk.text(line)).into_owned();
                    seen.push((line.number, text));
                }
            }
            let expected = [
                (1, "a,\"b\nc\"\n"),
                (4, "\"x\"\"\n\",y\n"),
                (6, "q\"r,s\n"),
                (7, "\"open,\nto the end"),
            ];
            assert_eq!(seen, expected.map(|(n, t)| (n, t.to_owned())));
        }
    }

    #[test]
    fn every_line_is_of_the_range_in_which_it_begins() {
        let text = b"\xef\xbb\xbfone\n\ntwo\r\nthree\n\n\nlast";
        let expected = lines_of(text, 100).into_iter().map(|(_, line)| line);
        let expected: Vec<_> = expected.collect();
        for first in 1..text.len() {
            for second in first..=text.len() {
                let mut seen = Vec::new();
                for (from, to) in [(0, first), (first, second), (second, text.len() + 1)] {
                    let mut reader = match from {
                        0 => LineReader::new(&text[..], None),
                        // What is before is left out, or was not given.
                        from if from % 2 == 0 => {
                            LineReader::starting(&text[..], None, 0, from as u64)
                        }
                        from => {
                            let at = from as u64 - 1;
                            LineReader::starting(&text[from - 1..], None, at, from as u64)
                        }
                    }
                    .until(to as u64);
                    let mut chunk = Chunk::default();
                    while reader.read_some(&mut chunk, 2).unwrap() {
                        let texts = chunk.lines().iter().map(|line| chunk.text(line));
                        seen.extend(
                            texts.map(|line| String::from_utf8_lossy(line).trim().to_owned()),
                        );
                    }
                }
                assert_eq!(seen, expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_is_read() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 10];
        text.extend_from_slice(b"\nnext\n");
        let mut reader = LineReader::new(&text[..], None);
        let mut chunk = Chunk::default();
        reader.read(&mut chunk, 1).unwrap();
        assert!(chunk.lines()[0].is_cut);
        reader.read(&mut chunk, 1).unwrap();
        let next = &chunk.lines()[0];
        assert_eq!((next.number, chunk.text(next)), (2, &b"next\n"[..]));
    }

    #[test]
    fn text_without_lines_is_read_in_steps() {
        let mut text = b"\n".repeat(2 * CHUNK_BYTES);
        text.extend(vec![b'x'; LINE_BYTES_MAX + 2 * CHUNK_BYTES]);
        text.extend_from_slice(b"\nlast");
        let mut reader = LineReader::new(io::BufReader::new(&text[..]), None);
        let mut chunk = Chunk::default();
        let mut steps = Vec::new();
        while reader.read_some(&mut chunk, 10).unwrap() {
            steps.push(chunk.lines().len());
        }
        assert_eq!(steps, [0, 0, 1, 0, 0, 1]);
    }
}
