//! How files are read beside a worker, whatever their format.

use std::fs::{self, File};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, Int64Array, StringArray};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::clock::Clock;
use crate::connect::{
    ConnectorStats, Counters, ListedFile, Position, Split, SplitFormat, SplitInput, SplitReader,
    SplitSource, list_files,
};

/// Reads whatever its function says, on the side thread.
struct Scripted<F>(F);

struct ScriptedReader<F>(F);

impl<F> SplitFormat for Scripted<F>
where
    F: Fn() -> Result<Option<RecordBatch>, ConnectError> + Clone + Send + Sync + 'static,
{
    fn open(
        &self,
        _split: &Split,
        _from: Position,
        _listed: &ListedFile,
        _file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError> {
        Ok(Box::new(ScriptedReader(self.0.clone())))
    }
}

impl<F: Fn() -> Result<Option<RecordBatch>, ConnectError>> SplitReader for ScriptedReader<F> {
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        (self.0)()
    }

    fn position(&self) -> Position {
        Position::Start
    }

    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

fn scripted<F>(path: &Path, script: F) -> (SplitSource, ConnectorStats)
where
    F: Fn() -> Result<Option<RecordBatch>, ConnectError> + Clone + Send + Sync + 'static,
{
    let stats = ConnectorStats::default();
    let input = SplitInput {
        format: Arc::new(Scripted(script)),
        files: vec![ListedFile::note(path.to_owned()).unwrap()].into(),
        splits: vec![Split::whole(0)].into(),
        stats: stats.clone(),
    };
    (SplitSource::new(input, None), stats)
}

fn batch(rows: i64) -> RecordBatch {
    let times = Arc::new(Int64Array::from_iter_values(0..rows));
    RecordBatch::try_from_iter([("event_time", times as _)]).unwrap()
}

fn wait_until(is_so: impl Fn() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(clock.now().0 < PATIENCE, "the reader does not read");
        std::thread::yield_now();
    }
}

fn some_file(dir: &tempfile::TempDir) -> PathBuf {
    let path = dir.path().join("input");
    fs::write(&path, "x").unwrap();
    path
}

#[test]
fn a_reader_that_waits_does_not_hold_up_its_worker() {
    let dir = tempfile::tempdir().unwrap();
    let door = Arc::new(Mutex::new(()));
    let closed = door.lock().unwrap();
    let (source, _) = scripted(&some_file(&dir), {
        let door = door.clone();
        move || {
            drop(door.lock());
            Ok(None)
        }
    });
    let mut stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    for _ in 0..100 {
        assert_eq!(stepped.poll().unwrap(), SourceProgress::Pending(None));
    }
    drop(closed);
    assert_eq!(stepped.run().unwrap().len(), 0);
}

#[test]
fn a_reader_is_only_a_little_ahead_and_stops_when_its_source_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (source, stats) = scripted(&some_file(&dir), || Ok(Some(batch(1000))));
    let mut stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    // Four batches wait in the ring, and the reader waits with the fifth.
    wait_until(|| stats.read().batches == 5);
    let clock = Clock::start();
    assert_eq!(stepped.poll().unwrap(), SourceProgress::Ready);
    assert_eq!(batches(&stepped.taken.elements).len(), 4);
    assert!(stats.read().batches <= 5 + 4);
    let dropped_at = clock.now();
    drop(stepped);
    let waited = clock.now().since(dropped_at);
    assert!(waited < Duration::from_secs(5), "{waited:?}");
}

#[test]
fn dropping_a_source_waits_neither_for_its_reader_nor_leaves_it_reading() {
    let dir = tempfile::tempdir().unwrap();
    let door = Arc::new(Mutex::new(()));
    let closed = door.lock().unwrap();
    let reads = Arc::new(());
    let (source, stats) = scripted(&some_file(&dir), {
        let (door, reads) = (door.clone(), reads.clone());
        move || {
            let _held = &reads;
            drop(door.lock());
            // As a reader that leaves out every row.
            Ok(Some(batch(0)))
        }
    });
    let stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    let clock = Clock::start();
    drop(stepped);
    let waited = clock.now().0;
    assert!(waited < Duration::from_millis(100), "{waited:?}");
    drop(closed);
    wait_until(|| Arc::strong_count(&reads) == 1);
    assert_eq!(stats.read().batches, 0);
}

#[test]
fn a_source_that_skips_all_there_is_can_be_dropped_at_any_time() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad"), "x\n".repeat(2_000_000)).unwrap();
    fs::write(dir.path().join("blank"), "\n".repeat(40_000_000)).unwrap();
    for name in ["bad", "blank"] {
        let options = format!(
            "path = '{name}'\non_error = 'skip'\nschema = [{{ name = 'id', type = 'int64' }}]"
        );
        let connector = super::source("ndjson", &options, dir.path());
        let stepped = Stepped::open(&*connector, 0, 1);
        wait_until(|| connector.stats().read().bytes > 0);
        let clock = Clock::start();
        drop(stepped);
        let waited = clock.now().0;
        assert!(waited < Duration::from_millis(100), "{waited:?}");
        let all = fs::metadata(dir.path().join(name)).unwrap().len();
        assert!(
            connector.stats().read().bytes < all,
            "it was not read to its end"
        );
    }
}

#[test]
fn a_reader_ahead_is_bounded_in_bytes_too() {
    let dir = tempfile::tempdir().unwrap();
    // One row of 24 MiB.
    let time: ArrayRef = Arc::new(Int64Array::from(vec![0]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(24 << 20)]));
    let large = RecordBatch::try_from_iter([("event_time", time), ("text", text)]).unwrap();
    let (source, stats) = scripted(&some_file(&dir), move || Ok(Some(large.clone())));
    let mut stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    // One batch is queued; the second waits though there are slots.
    wait_until(|| stats.read().batches == 2);
    let bell = Bell::thread();
    bell.arm();
    bell.park(Some(Duration::from_millis(50)));
    assert_eq!(stats.read().batches, 2);
    let _ = stepped.poll().unwrap();
    wait_until(|| stats.read().batches > 2);
}

#[test]
fn nothing_is_taken_while_the_output_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (source, stats) = scripted(&some_file(&dir), || Ok(Some(batch(1))));
    let mut stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    stepped.taken.is_full = true;
    wait_until(|| stats.read().batches == 5);
    let _ = stepped.poll().unwrap();
    assert!(stepped.taken.elements.is_empty());
    stepped.taken.is_full = false;
    let _ = stepped.poll().unwrap();
    assert!(!stepped.taken.elements.is_empty());
}

#[test]
fn a_panic_of_a_reader_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (source, _) = scripted(&some_file(&dir), || panic!("out of luck"));
    let mut stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    let error = loop {
        match stepped.poll() {
            Ok(progress) => assert_eq!(progress, SourceProgress::Pending(None)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("input panicked: out of luck"), "{error}");
    assert!(stepped.run().is_err(), "a failure never becomes an end");
}

#[test]
fn a_file_that_changes_or_vanishes_after_planning_is_an_error() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 3] = [
        (
            |path| fs::write(path, "{\"id\":1}\n{\"id\":2}\n").unwrap(),
            "has changed",
        ),
        (|path| fs::remove_file(path).unwrap(), "cannot be opened"),
        (
            |path| {
                let modified = fs::metadata(path).unwrap().modified().unwrap();
                let other = path.with_extension("new");
                fs::copy(path, &other).unwrap();
                File::options()
                    .write(true)
                    .open(&other)
                    .and_then(|file| file.set_modified(modified))
                    .unwrap();
                fs::rename(other, path).unwrap();
            },
            "has changed",
        ),
    ];
    for (change, expected) in changes {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ndjson");
        fs::write(&path, "{\"id\":1}\n").unwrap();
        let connector = source("ndjson", "path = 'a.ndjson'", dir.path());
        change(&path);
        let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("a.ndjson") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_file_that_is_written_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = some_file(&dir);
    let (source, _) = scripted(&path, {
        let path = path.clone();
        move || {
            fs::write(&path, "longer than it was").unwrap();
            Ok(None)
        }
    });
    let error = Stepped::of(Box::new(source), &subtask(0, 1))
        .run()
        .unwrap_err();
    assert!(error.to_string().contains("has changed"), "{error}");
}

#[test]
fn a_file_that_is_removed_or_replaced_while_it_is_read_is_an_error() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 2] = [
        (|path| fs::remove_file(path).unwrap(), "was removed"),
        (
            |path| {
                fs::write(path.with_extension("new"), "y").unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            },
            "has changed",
        ),
    ];
    for (change, expected) in changes {
        let dir = tempfile::tempdir().unwrap();
        let path = some_file(&dir);
        let (source, _) = scripted(&path, {
            let path = path.clone();
            move || {
                change(&path);
                Ok(None)
            }
        });
        let stepped = Stepped::of(Box::new(source), &subtask(0, 1));
        let error = stepped.run().unwrap_err().to_string();
        assert!(error.contains("input: the file "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_has_changed_whatever_else_is_wrong_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = some_file(&dir);
    let (source, _) = scripted(&path, {
        let path = path.clone();
        move || {
            fs::write(&path, "").unwrap();
            Err(ConnectError::file(&path, "the row ends within quotes"))
        }
    });
    let stepped = Stepped::of(Box::new(source), &subtask(0, 1));
    let error = stepped.run().unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
}

#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let patterns = ["pipe".to_owned()];
    let error = list_files(dir.path(), &patterns).unwrap_err().to_string();
    assert!(error.contains("pipe: is not a regular file"), "{error}");
    // Also where it takes the place of a file that was listed.
    let path = some_file(&dir);
    let listed = ListedFile::note(path.clone()).unwrap();
    fs::rename(&pipe, &path).unwrap();
    let error = listed.open().unwrap_err().to_string();
    assert!(error.contains("is not a regular file"), "{error}");
}

#[test]
fn patterns_list_each_file_once_in_the_order_of_names() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b", "a", "c[1]"] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    fs::create_dir(dir.path().join("d")).unwrap();
    let list = |patterns: &[&str]| {
        let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        let files = list_files(dir.path(), &patterns)?;
        let name = |file: &ListedFile| file.path.file_name().unwrap().to_owned();
        Ok::<_, ConnectError>(files.iter().map(name).collect::<Vec<_>>())
    };
    assert_eq!(list(&["*"]).unwrap(), ["a", "b", "c[1]"]);
    assert_eq!(list(&["c[1]", "[ab]", "*"]).unwrap(), ["c[1]", "a", "b"]);
    assert!(matches!(list(&["x*"]), Err(ConnectError::NoMatch { .. })));
    assert!(matches!(list(&["d"]), Err(ConnectError::NoMatch { .. })));
    assert!(matches!(list(&["a["]), Err(ConnectError::Option { .. })));
    assert!(matches!(list(&[]), Err(ConnectError::Option { .. })));
}
