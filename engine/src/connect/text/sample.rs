//! The first rows of files, from which columns are inferred.

use crate::connect::{ConnectError, ListedFile, OnError};

use super::format::{end_line, read_header};
use super::input::{TextCompression, TextInput};
use super::lines::{Chunk, LINE_BYTES_MAX, LineReader, Marks};
use super::reader::bad_row;

/// Bytes of text that are read for it, about: enough for any columns that people write, and few
/// enough to be held in memory.
const SAMPLE_BYTES_MAX: u64 = 64 << 20;

const _: () = assert!(
    SAMPLE_BYTES_MAX > 2 * LINE_BYTES_MAX as u64,
    "a header and a row fit"
);

/// Rows from the start of files, as they are written.
#[derive(Debug)]
pub(crate) struct Sample {
    rows_max: usize,
    on_error: OnError,
    compression: TextCompression,
    /// Bytes that may still be read.
    bytes_left: u64,
    text: Vec<u8>,
    rows: usize,
}

impl Sample {
    /// No rows yet, of `rows_max` at most.
    pub(crate) const fn new(
        rows_max: usize,
        on_error: OnError,
        compression: TextCompression,
    ) -> Self {
        Self {
            rows_max,
            on_error,
            compression,
            bytes_left: SAMPLE_BYTES_MAX,
            text: Vec::new(),
            rows: 0,
        }
    }

    /// The text of the rows, behind the header of their file where it has one.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many rows there are.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Makes sure that there is a row.
    pub(crate) fn require_rows(&self) -> Result<(), ConnectError> {
        let place = match (self.rows, self.bytes_left) {
            (1.., _) => return Ok(()),
            (0, 0) => format!(" in the first {SAMPLE_BYTES_MAX} bytes"),
            (0, _) => String::new(),
        };
        let reason = format!("there is no row{place} from which to infer the columns: give them");
        Err(ConnectError::option("schema", reason))
    }

    /// Adds the first rows of `listed`, whose lines have `marks`. With `has_header` there are
    /// none yet, and its header comes before them.
    ///
    /// `check` says of each line, behind the header, whether it is a row. Those that are none are
    /// the reader's to report or to skip, so that both do the same.
    pub(crate) fn add(
        &mut self,
        listed: &ListedFile,
        marks: Option<Marks>,
        has_header: bool,
        check: impl Fn(&[u8]) -> Result<(), String>,
    ) -> Result<(), ConnectError> {
        let unreadable = |error| ConnectError::file(&listed.path, error);
        let input = TextInput::of_file(&listed.path, listed.open()?, self.compression);
        let mut lines = LineReader::new(input.map_err(unreadable)?, marks);
        if has_header {
            assert_eq!(
                self.rows, 0,
                "the rows behind a header are those of its file"
            );
            self.text = read_header(&mut lines).map_err(unreadable)?;
        }
        let header_bytes = if has_header { self.text.len() } else { 0 };
        let (mut chunk, mut alone) = (Chunk::default(), Vec::new());
        while self.rows < self.rows_max && lines.offset() < self.bytes_left {
            let more = lines.read_some(&mut chunk, self.rows_max - self.rows);
            if !more.map_err(unreadable)? {
                break;
            }
            for line in chunk.lines() {
                alone.clear();
                alone.extend_from_slice(&self.text[..header_bytes]);
                alone.extend_from_slice(chunk.text(line));
                let checked = match line.is_cut {
                    true => Err("the line is too long to be a row".to_owned()),
                    false => check(&alone),
                };
                match (checked, self.on_error) {
                    (Ok(()), _) => {
                        self.text.extend_from_slice(chunk.text(line));
                        end_line(&mut self.text);
                        self.rows += 1;
                    }
                    (Err(_), OnError::Skip) => {}
                    (Err(reason), OnError::Fail) => {
                        return Err(bad_row(&listed.path, line.number, reason));
                    }
                }
            }
        }
        self.bytes_left = self.bytes_left.saturating_sub(lines.offset());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_of(text: &str, on_error: OnError, bytes_max: u64) -> Result<Sample, ConnectError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ndjson");
        std::fs::write(&path, text).unwrap();
        let mut sample = Sample {
            bytes_left: bytes_max,
            ..Sample::new(usize::MAX, on_error, TextCompression::None)
        };
        let is_row = |text: &[u8]| match text.starts_with(b"bad") {
            true => Err("it is bad".to_owned()),
            false => Ok(()),
        };
        sample.add(&ListedFile::note(path)?, None, false, is_row)?;
        Ok(sample)
    }

    #[test]
    fn no_more_text_is_read_than_is_held_in_memory() {
        let text = "good\n".repeat(3 << 20);
        let sample = sample_of(&text, OnError::Fail, 1 << 20).unwrap();
        assert!(sample.text().len() < 10 << 20, "{}", sample.text().len());
        sample.require_rows().unwrap();
        // Nor where nothing of it is a row.
        let text = format!("{}{}good\n", "bad\n".repeat(3 << 20), "\n".repeat(6 << 20));
        let sample = sample_of(&text, OnError::Skip, 1 << 20).unwrap();
        assert_eq!(sample.rows(), 0);
        let error = sample.require_rows().unwrap_err().to_string();
        assert!(error.contains("no row in the first"), "{error}");
    }

    #[test]
    fn a_line_that_was_cut_is_no_row() {
        let text = format!("{}\ngood\n", "x".repeat(LINE_BYTES_MAX + 1));
        let sample = sample_of(&text, OnError::Skip, u64::MAX).unwrap();
        assert_eq!((sample.rows(), sample.text()), (1, &b"good\n"[..]));
        let error = sample_of(&text, OnError::Fail, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("a.ndjson:1: "), "{error}");
    }
}
