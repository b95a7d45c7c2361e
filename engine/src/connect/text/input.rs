//! Text as it is read: from files, compressed or not, or from what others are still writing.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use crate::connect::live::input::LiveInput;

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 256 << 10;

/// How the text of a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextCompression {
    /// As the name says: `.gz` is gzip, `.zst` and `.zstd` are zstd, others are not compressed.
    #[default]
    Auto,
    /// Not at all.
    None,
    /// gzip, of one or more members.
    Gzip,
    /// zstd, of one or more frames.
    Zstd,
}

impl TextCompression {
    /// What it is for the file `path`: never [`TextCompression::Auto`].
    pub(crate) fn of(self, path: &Path) -> Self {
        if self != Self::Auto {
            return self;
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Text to read, uncompressed.
pub(crate) struct TextInput {
    text: Text,
    /// Bytes taken from the file, compressed if it is, that have not been counted.
    read_bytes: Rc<Cell<u64>>,
}

enum Text {
    Stored(Box<dyn BufRead>),
    Live(BufReader<LiveInput>),
}

impl TextInput {
    /// The text of `file`, whose path is `path`, from byte `from` on, or from before that where
    /// compressed text can't be entered: where it begins is told too.
    pub(crate) fn of_file_from(
        path: &Path,
        mut file: File,
        compression: TextCompression,
        from: u64,
    ) -> io::Result<(Self, u64)> {
        let is_stored = compression.of(path) == TextCompression::None;
        let at = if is_stored { from } else { 0 };
        file.seek(SeekFrom::Start(at))?;
        Self::of_file(path, file, compression).map(|input| (input, at))
    }

    /// The text of `file`, whose path is `path`, from where it is.
    pub(crate) fn of_file(
        path: &Path,
        file: File,
        compression: TextCompression,
    ) -> io::Result<Self> {
        let compression = compression.of(path);
        if compression != TextCompression::None && file.metadata()?.len() == 0 {
            // As for any other that is cut: an empty text takes some bytes when it is compressed.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let read_bytes = Rc::new(Cell::new(0));
        let file = Counted {
            input: file,
            bytes: read_bytes.clone(),
        };
        let file = BufReader::with_capacity(READ_BYTES, file);
        let text: Box<dyn BufRead> = match compression {
            TextCompression::Gzip => Box::new(BufReader::with_capacity(
                READ_BYTES,
                MultiGzDecoder::new(file),
            )),
            TextCompression::Zstd => {
                let decoder = zstd::Decoder::with_buffer(file)?;
                Box::new(BufReader::with_capacity(READ_BYTES, decoder))
            }
            TextCompression::Auto | TextCompression::None => Box::new(file),
        };
        Ok(Self {
            text: Text::Stored(text),
            read_bytes,
        })
    }

    /// Text that someone is still writing.
    pub(crate) fn live(input: LiveInput) -> Self {
        Self {
            text: Text::Live(BufReader::with_capacity(READ_BYTES, input)),
            read_bytes: Rc::default(),
        }
    }

    /// Bytes taken from the file since the last call.
    pub(crate) fn take_bytes(&self) -> u64 {
        self.read_bytes.take()
    }

    /// Whether another line can be had without waiting for someone to write it.
    pub(crate) fn is_ready(&self) -> bool {
        match &self.text {
            Text::Stored(_) => true,
            Text::Live(input) => input.buffer().contains(&b'\n'),
        }
    }

    fn reader(&mut self) -> &mut dyn BufRead {
        match &mut self.text {
            Text::Stored(input) => input,
            Text::Live(input) => input,
        }
    }
}

impl Read for TextInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader().read(buffer)
    }
}

impl BufRead for TextInput {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader().fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader().consume(amount);
    }
}

struct Counted<R> {
    input: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}
