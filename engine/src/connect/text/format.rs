//! Reads files of lines, of whichever form.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;

use crate::connect::files::input::FileInput;
use crate::connect::files::source::FileFormat;
use crate::connect::files::split::{byte_splits, require_split_bytes};
use crate::connect::{
    ConnectError, EventTimeLayout, ListedFile, OnError, Part, Position, Split, SplitFormat,
    SplitReader, TextCompression,
};

use super::bad_rows::BadRows;
use super::counts::LineCounts;
use super::input::TextInput;
use super::lines::{Chunk, LineReader, Marks};
use super::reader::{Origin, TextReader};
use super::rows::TextRows;

/// Knows how lines are rows.
pub(crate) trait LineForm: Send + Sync + 'static {
    /// The connector, as job files name it.
    const CONNECTOR: &'static str;

    /// How rows become the columns of the stream.
    fn layout(&self) -> &EventTimeLayout;

    /// What is between and around the values of a line, if anything is.
    fn marks(&self) -> Option<Marks> {
        None
    }

    /// Whether the first line of a file is a header.
    fn has_header(&self) -> bool {
        false
    }

    /// What decodes the lines of a file of this header. There is none where files have none, or
    /// where a file has no line.
    ///
    /// # Errors
    /// A sentence, when the header is not that of such a file.
    fn rows(&self, header: Option<&[u8]>) -> Result<Box<dyn TextRows>, String>;
}

/// A form of lines, with what holds for all of them.
pub(crate) struct TextFormat<F> {
    pub(crate) form: F,
    pub(crate) on_error: OnError,
    pub(crate) bad_rows: Option<BadRows>,
    pub(crate) compression: TextCompression,
    counts: LineCounts,
}

impl<F: LineForm> TextFormat<F> {
    /// What lines are `form`, read from files that are named by the options.
    pub(crate) fn of_files(
        form: F,
        (on_error, bad_rows): (OnError, Option<&Path>),
        compression: TextCompression,
        base: &Path,
        files: &FileInput,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            form,
            on_error,
            bad_rows: BadRows::new(bad_rows, base, on_error, files.files())?,
            compression,
            counts: LineCounts::default(),
        })
    }

    /// What lines are `form`, which come by themselves.
    pub(crate) fn live(
        form: F,
        (on_error, bad_rows): (OnError, Option<&Path>),
        base: &Path,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            form,
            on_error,
            bad_rows: BadRows::new(bad_rows, base, on_error, &[])?,
            compression: TextCompression::None,
            counts: LineCounts::default(),
        })
    }

    /// The splits of `files`, each of about `split_bytes` where text can be entered in the middle:
    /// where it is not compressed and a line end always ends a line.
    pub(crate) fn splits(
        &self,
        files: &FileInput,
        split_bytes: u64,
    ) -> Result<Vec<Split>, ConnectError> {
        require_split_bytes(split_bytes)?;
        let files = files.files().iter().enumerate();
        let splits = files.flat_map(|(file, listed)| {
            let is_stored = self.compression.of(&listed.path) == TextCompression::None;
            match is_stored && !self.holds_line_ends() {
                true => byte_splits(file, listed, split_bytes),
                false => vec![Split::whole(file)],
            }
        });
        Ok(splits.collect())
    }

    fn holds_line_ends(&self) -> bool {
        self.form.marks().is_some_and(|marks| marks.hold_line_ends)
    }

    /// Reads all lines of `lines`, which have no header before them.
    fn reader(
        &self,
        lines: LineReader<TextInput>,
        header: Option<&[u8]>,
        path: &Path,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        let rows = self.form.rows(header);
        let rows = rows.map_err(|reason| ConnectError::file(path, reason))?;
        let origin = Origin::new(path, self.compression, self.counts.clone());
        let layout = self.form.layout().clone();
        let reader = TextReader::new(lines, rows, layout, self.on_error, origin);
        Ok(Box::new(reader.with_bad_rows(self.bad_rows.as_ref())?))
    }
}

impl<F: LineForm> SplitFormat for TextFormat<F> {
    fn open(
        &self,
        split: &Split,
        from: Position,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        if let Some(bad_rows) = &self.bad_rows {
            bad_rows.require_other_than(listed)?;
        }
        let path = &listed.path;
        let unreadable = |error| ConnectError::file(path, error);
        let again = file.try_clone().map_err(unreadable)?;
        let (input, _) =
            TextInput::of_file_from(path, file, self.compression, 0).map_err(unreadable)?;
        let mut lines = LineReader::new(input, self.form.marks());
        let header = match self.form.has_header() {
            true => Some(read_header(&mut lines).map_err(unreadable)?),
            false => None,
        };
        let (range_from, end) = match split.part {
            Part::Bytes { from, to } => (from, Some(to)),
            _ => (0, None),
        };
        let from = match from {
            Position::Bytes(from) => from,
            // What the header takes is no row, wherever ranges begin.
            _ => range_from.max(lines.offset()),
        };
        if from > lines.offset() {
            let (input, at) = TextInput::of_file_from(path, again, self.compression, from - 1)
                .map_err(unreadable)?;
            lines = LineReader::starting(input, self.form.marks(), at, from);
        }
        if let Some(end) = end {
            lines = lines.until(end);
        }
        self.reader(lines, header.as_deref(), path)
    }

    fn resume(&self) {
        if let Some(bad_rows) = &self.bad_rows {
            bad_rows.keep();
        }
    }
}

impl<F: LineForm> FileFormat for TextFormat<F> {
    const CONNECTOR: &'static str = F::CONNECTOR;

    fn layout(&self) -> &EventTimeLayout {
        self.form.layout()
    }

    fn bad_rows(&self) -> Option<&Path> {
        self.bad_rows.as_ref().map(BadRows::path)
    }
}

/// Reads lines that come, whatever their form.
pub(crate) trait LiveFormat: Send + Sync {
    /// The schema of the rows: column 0 is the event time.
    fn schema(&self) -> SchemaRef;

    /// Where rows are written that are left out.
    fn bad_rows(&self) -> Option<&Path>;

    /// Reads `input`, which messages call `name`.
    fn open(&self, input: TextInput, name: PathBuf) -> Result<Box<dyn SplitReader>, ConnectError>;
}

impl<F: LineForm> LiveFormat for TextFormat<F> {
    fn schema(&self) -> SchemaRef {
        self.form.layout().schema().clone()
    }

    fn bad_rows(&self) -> Option<&Path> {
        self.bad_rows.as_ref().map(BadRows::path)
    }

    fn open(&self, input: TextInput, name: PathBuf) -> Result<Box<dyn SplitReader>, ConnectError> {
        let lines = LineReader::new(input, self.form.marks());
        self.reader(lines, None, &name)
    }
}

/// The text of the header, with a line end; empty where there is none.
pub(crate) fn read_header(lines: &mut LineReader<TextInput>) -> std::io::Result<Vec<u8>> {
    let mut chunk = Chunk::default();
    lines.read(&mut chunk, 1)?;
    let mut header = match chunk.lines() {
        [line] if line.is_cut => {
            let reason = "the header is too long to be one: is a quote left open?";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
        }
        [line] => chunk.text(line).to_vec(),
        _ => Vec::new(),
    };
    end_line(&mut header);
    Ok(header)
}

/// Ends what is in `text` with a line end, if there is anything.
pub(crate) fn end_line(text: &mut Vec<u8>) {
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
}
