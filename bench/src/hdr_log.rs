//! Latencies as an interval log, which the tools of HDR histograms read.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::BenchError;
use crate::latencies::Latencies;

/// The longest time of an interval stands in the log in milliseconds.
const NS_PER_MS: f64 = 1e6;

/// Collects the latencies of runs, one interval a run, for a file that is written at the end.
#[derive(Debug)]
pub(crate) struct HdrLog {
    path: PathBuf,
    began: SystemTime,
    intervals: RefCell<Vec<Interval>>,
}

/// A run. Its latencies are kept as they are written, which takes some kilobytes.
#[derive(Debug)]
struct Interval {
    tag: String,
    start: Duration,
    wall: Duration,
    encoded: Vec<u8>,
}

impl HdrLog {
    /// A log that begins now.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            began: SystemTime::now(),
            intervals: RefCell::default(),
        }
    }

    /// Adds a run of `contender` that has just ended.
    ///
    /// # Errors
    /// When the latencies can't be encoded.
    pub(crate) fn add(
        &self,
        case: &str,
        contender: &str,
        wall: Duration,
        latencies: &Latencies,
    ) -> Result<(), BenchError> {
        let now = self.began.elapsed().unwrap_or_default();
        self.intervals.borrow_mut().push(Interval {
            tag: tag(case, contender),
            start: now.saturating_sub(wall),
            wall,
            encoded: latencies.encode()?,
        });
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it can't be written; the error names it.
    pub(crate) fn finish(self) -> Result<(), BenchError> {
        let name = self.path.display().to_string();
        self.write().map_err(|error| error.within(&name))
    }

    fn write(mut self) -> Result<(), BenchError> {
        let mut file = BufWriter::new(File::create(&self.path)?);
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("nanoseconds; the tag is the case and who ran, the maximum in ms")
            .with_max_value_divisor(NS_PER_MS)
            .with_start_time(self.began)
            .with_base_time(self.began);
        let mut writer = builder.begin_log_with(&mut file, &mut serializer)?;
        let intervals = self.intervals.get_mut();
        // The runs of a pair may have begun in any order.
        intervals.sort_by_key(|interval| interval.start);
        for interval in intervals {
            let latencies = Latencies::decode(&interval.encoded)?;
            let written = writer.write_histogram(
                latencies.histogram(),
                interval.start,
                interval.wall,
                Tag::new(&interval.tag),
            );
            written.map_err(|error| BenchError::new(format!("{error:?}")))?;
        }
        drop(writer);
        Ok(file.flush()?)
    }
}

/// A tag has neither commas nor spaces.
fn tag(case: &str, contender: &str) -> String {
    let allowed = |one: char| {
        if one == ',' || one.is_whitespace() {
            '-'
        } else {
            one
        }
    };
    format!("{case}={contender}").chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn of(times_us: std::ops::RangeInclusive<u64>) -> Latencies {
        let mut latencies = Latencies::new();
        times_us.for_each(|us| latencies.record(Duration::from_micros(us)));
        latencies
    }

    fn read_back(path: &Path) -> Vec<(String, Histogram<u64>)> {
        let text = std::fs::read(path).unwrap();
        let mut read = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(interval) = entry.unwrap() else {
                continue;
            };
            let max_ns = interval.max() * NS_PER_MS;
            let encoded = base64(interval.encoded_histogram());
            let histogram: Histogram<u64> =
                Deserializer::new().deserialize(&mut &encoded[..]).unwrap();
            assert!(
                (histogram.max() as f64 / max_ns - 1.0).abs() < 0.1,
                "{max_ns} ns"
            );
            read.push((interval.tag().unwrap().as_str().to_owned(), histogram));
        }
        read
    }

    /// The bytes that stand for a text in base64.
    fn base64(text: &str) -> Vec<u8> {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits = text.bytes().filter(|&byte| byte != b'=');
        let digits: Vec<u32> = digits
            .map(|byte| DIGITS.iter().position(|&digit| digit == byte).unwrap() as u32)
            .collect();
        let mut bytes = Vec::new();
        for four in digits.chunks(4) {
            let word =
                four.iter().fold(0, |word, digit| word << 6 | digit) << (6 * (4 - four.len()));
            bytes.extend(&word.to_be_bytes()[1..four.len()]);
        }
        bytes
    }

    #[test]
    fn a_reader_of_the_format_finds_each_run_with_all_its_times() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("ringway-bench-{}.hlog", std::process::id()));
        let log = HdrLog::new(&path);
        let wall = Duration::from_millis(1);
        log.add("load/x/1", "ours", wall, &of(1..=1_000)).unwrap();
        log.add("load/x/1", "raw tcp", wall, &of(5..=7)).unwrap();
        log.finish().unwrap();
        let read = read_back(&path);
        std::fs::remove_file(&path).unwrap();
        let tags: Vec<&str> = read.iter().map(|(tag, _)| tag.as_str()).collect();
        assert_eq!(tags, ["load/x/1=ours", "load/x/1=raw-tcp"]);
        let expected = of(1..=1_000);
        assert_eq!(read[0].1.len(), 1_000);
        assert_eq!(read[0].1.max(), expected.histogram().max());
        assert_eq!(read[1].1.len(), 3);
    }

    #[test]
    fn a_file_that_can_not_be_written_is_named() {
        let log = HdrLog::new(Path::new("/no such folder/x.hlog"));
        let error = log.finish().unwrap_err().to_string();
        assert!(error.starts_with("/no such folder/x.hlog: "), "{error}");
    }
}
