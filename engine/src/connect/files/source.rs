//! A source that reads files, whatever the format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::connect::side::reader::AHEAD_BYTES_MAX;
use crate::connect::side::source::SplitSource;
use crate::connect::{
    ConnectorStats, EventTimeLayout, SourceConnector, Split, SplitFormat, SplitInput,
    WatermarkOptions,
};
use crate::operator::{Source, Subtask};

use super::input::FileInput;
use super::watch::WatchInput;

/// What a format adds to a source of files.
pub(crate) trait FileFormat: SplitFormat {
    /// The connector, as job files name it.
    const CONNECTOR: &'static str;

    /// What its files are cut into, for people.
    const PIECES: &'static str = "splits";

    /// How what is read becomes the columns of the stream.
    fn layout(&self) -> &EventTimeLayout;

    /// The file of the rows that are left out, if there is one.
    fn bad_rows(&self) -> Option<&Path> {
        None
    }

    /// Bytes that reading takes beside the batches that wait.
    fn reading_bytes(&self) -> usize {
        0
    }
}

/// A source of files of one format.
pub(crate) struct FileSource<F> {
    format: Arc<F>,
    files: FileInput,
    splits: Arc<[Split]>,
    watermark: Option<WatermarkOptions>,
    stats: ConnectorStats,
}

impl<F: FileFormat> FileSource<F> {
    /// A source of `files`, which are cut into `splits`, or of those that come.
    pub(crate) fn new(
        format: F,
        files: FileInput,
        splits: Vec<Split>,
        watermark: Option<WatermarkOptions>,
    ) -> Self {
        Self {
            format: Arc::new(format),
            files,
            splits: splits.into(),
            watermark,
            stats: ConnectorStats::default(),
        }
    }
}

impl<F: FileFormat> SourceConnector for FileSource<F> {
    fn schema(&self) -> SchemaRef {
        self.format.layout().schema().clone()
    }

    fn has_event_time(&self) -> bool {
        self.format.layout().has_event_time()
    }

    fn parallelism_max(&self) -> Option<usize> {
        self.files.watch.is_none().then_some(self.splits.len())
    }

    fn paths_read(&self) -> Vec<PathBuf> {
        let files = self.files.files().iter();
        files.map(|file| file.path.clone()).collect()
    }

    fn patterns_watched(&self) -> Vec<String> {
        self.files.patterns_watched()
    }

    fn bad_rows_path(&self) -> Option<PathBuf> {
        self.format.bad_rows().map(Path::to_owned)
    }

    fn describe(&self) -> String {
        let files = self.files.describe(F::CONNECTOR);
        match self.splits.len() {
            splits if splits > self.files.files().len() => {
                format!("{files}, {splits} {}", F::PIECES)
            }
            _ => files,
        }
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX + self.format.reading_bytes()
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, _subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let (stats, watermark) = (self.stats.clone(), self.watermark.clone());
        let format = self.format.clone();
        if self.files.watch.is_some() {
            let input = WatchInput::new(format, &self.files);
            return Box::new(SplitSource::of(Box::new(input), stats, watermark));
        }
        let input = SplitInput {
            format,
            files: self.files.files().into(),
            splits: self.splits.clone(),
            stats,
        };
        Box::new(SplitSource::new(input, watermark))
    }
}
