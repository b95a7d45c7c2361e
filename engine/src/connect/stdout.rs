//! Writes newline-delimited JSON to standard output.

use std::os::fd::AsFd;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};
use serde::Deserialize;

use crate::operator::{Sink, Subtask};

use crate::connect::ndjson::sink::{JsonLines, require_json};
use crate::connect::side::writer::{AHEAD_BYTES_MAX, BatchWriter, WriterSink};
use crate::connect::{ConnectError, ConnectorStats, SinkConnector};

/// Bytes that a pipe takes at once without waiting when it says that it takes any, and as one
/// piece, so that lines of several subtasks don't mix (`PIPE_BUF`).
const PIECE_BYTES: usize = 4096;

/// How long to wait for a reader before looking whether anyone still wants the output.
const LOOK_AFTER: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Options of the connector `stdout`, a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StdoutOptions {
    /// Whether a null is written as `null`; otherwise its field is left out. Default false.
    pub explicit_nulls: bool,
}

/// A sink that writes each row as a line of JSON to standard output; how values are written
/// says [`super::NdjsonSink`]. Lines of up to 4096 bytes are whole, also when several subtasks
/// write.
///
/// A job that is stopped or fails has its rows written as far as standard output takes them
/// at that moment.
#[derive(Clone, Debug, Default)]
pub struct Stdout {
    options: StdoutOptions,
    stats: ConnectorStats,
}

impl Stdout {
    /// A sink to standard output.
    pub fn new(options: StdoutOptions) -> Self {
        Self {
            options,
            stats: ConnectorStats::default(),
        }
    }
}

impl SinkConnector for Stdout {
    fn validate(&self, schema: &SchemaRef, _parallelism: u32) -> Result<(), ConnectError> {
        require_json(schema)
    }

    fn describe(&self) -> String {
        "stdout".to_owned()
    }

    fn memory_bytes(&self) -> usize {
        AHEAD_BYTES_MAX
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, _subtask: &Subtask, _schema: &SchemaRef) -> Box<dyn Sink<RecordBatch>> {
        let lines = JsonLines::new(self.options.explicit_nulls);
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            Ok(Box::new(StreamWriter {
                output: std::io::stdout(),
                lines,
            }))
        };
        Box::new(WriterSink::new(
            "standard output".to_owned(),
            Box::new(start),
            self.stats.clone(),
        ))
    }
}

struct StreamWriter<F> {
    output: F,
    lines: JsonLines,
}

impl<F: AsFd> BatchWriter for StreamWriter<F> {
    fn write(
        &mut self,
        batch: &RecordBatch,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        let mut text = self.lines.encode(batch).map_err(cannot)?;
        let bytes = text.len() as u64;
        while !text.is_empty() {
            let (piece, rest) = text.split_at(piece_length(text));
            if !write_piece(&self.output, piece, is_gone)? {
                return Ok(bytes - text.len() as u64);
            }
            text = rest;
        }
        Ok(bytes)
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        Ok(0)
    }
}

/// Whole lines that make up to a piece; a piece of a line if that is longer.
fn piece_length(text: &[u8]) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let last_end = text[..PIECE_BYTES].iter().rposition(|byte| *byte == b'\n');
    last_end.map_or(PIECE_BYTES, |end| end + 1)
}

/// Writes all of `piece`. False when its reader is slow and the sink is gone.
fn write_piece(
    output: &impl AsFd,
    mut piece: &[u8],
    is_gone: &dyn Fn() -> bool,
) -> Result<bool, ConnectError> {
    while !piece.is_empty() {
        let gone = is_gone();
        let wait = if gone {
            Timespec::default()
        } else {
            LOOK_AFTER
        };
        let mut ready = [PollFd::new(output, PollFlags::OUT)];
        match poll(&mut ready, Some(&wait)) {
            Ok(0) if gone => return Ok(false),
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(cannot(error)),
        }
        match write(output, piece) {
            Ok(written) => piece = &piece[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(Errno::PIPE) => return Err(cannot("its reader is gone")),
            Err(error) => return Err(cannot(error)),
        }
    }
    Ok(true)
}

fn cannot(reason: impl std::fmt::Display) -> ConnectError {
    ConnectError::file(
        std::path::Path::new("standard output"),
        format_args!("cannot be written: {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read};

    use ringway_shm::Bell;

    use crate::operator::Progress;

    use super::*;
    use crate::connect::{NexmarkKind, nexmark_batches};

    fn sink_to(output: PipeWriter) -> WriterSink {
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            Ok(Box::new(StreamWriter {
                output,
                lines: JsonLines::new(false),
            }))
        };
        let stats = ConnectorStats::default();
        WriterSink::new("a pipe".to_owned(), Box::new(start), stats)
    }

    /// Gives a sink batches until it has enough of them.
    fn fill(sink: &mut WriterSink, bell: &Bell) -> usize {
        sink.open(&Subtask::single("tested"), bell).unwrap();
        let batch = nexmark_batches(NexmarkKind::Bid, 1000, 1000).remove(0);
        for written in 1..100 {
            if sink.write(batch.clone(), 0).unwrap() == Progress::More {
                return written;
            }
        }
        panic!("a full pipe takes everything");
    }

    fn lines_of(mut reader: PipeReader) -> usize {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text.lines().count()
    }

    #[test]
    fn a_full_pipe_blocks_neither_the_worker_nor_the_end_of_the_job() {
        let (reader, output) = std::io::pipe().unwrap();
        let mut sink = sink_to(output);
        fill(&mut sink, &Bell::thread());
        assert_eq!(sink.resume(0).unwrap(), Progress::More);
        drop(sink);
        assert!(lines_of(reader) > 0);
    }

    #[test]
    fn every_line_arrives_once_the_reader_reads() {
        let (reader, output) = std::io::pipe().unwrap();
        let mut sink = sink_to(output);
        let bell = Bell::thread();
        let batches = fill(&mut sink, &bell);
        let lines = std::thread::spawn(move || lines_of(reader));
        let mut is_ending = false;
        loop {
            bell.arm();
            if sink.resume(0).unwrap() == Progress::More {
                bell.park(None);
                continue;
            }
            bell.disarm();
            if is_ending || sink.on_end(0).unwrap() == Progress::Done {
                break;
            }
            is_ending = true;
        }
        drop(sink);
        assert_eq!(lines.join().unwrap(), 1000 * batches);
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (reader, output) = std::io::pipe().unwrap();
        drop(reader);
        let mut sink = sink_to(output);
        let bell = Bell::thread();
        sink.open(&Subtask::single("tested"), &bell).unwrap();
        let batch = nexmark_batches(NexmarkKind::Bid, 10, 10).remove(0);
        let mut outcome = sink.write(batch, 0).and_then(|_| sink.on_end(0));
        while let Ok(Progress::More) = outcome {
            bell.arm();
            outcome = sink.resume(0);
            if let Ok(Progress::More) = outcome {
                bell.park(None);
            }
        }
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("its reader is gone"), "{error}");
    }

    #[test]
    fn pieces_are_whole_lines_where_they_can_be() {
        let text = [vec![b'a'; 4000], vec![b'\n'], vec![b'b'; 9000], vec![b'\n']].concat();
        assert_eq!(piece_length(&text), 4001);
        assert_eq!(piece_length(&text[4001..]), PIECE_BYTES);
        assert_eq!(piece_length(b"short\n"), 6);
    }
}
