//! Input that comes in its own time: watched folders, standard input, sockets.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::time::Instant;

use super::*;
use crate::connect::{LiveSource, StdinOptions};

const SCHEMA: &str = "schema = [{ name = 'id', type = 'int64' }, \
                      { name = 'event_time', type = 'int64' }]\n";

impl Stepped {
    /// Polls until `count` rows have come.
    fn until(&mut self, count: usize) -> Result<(), OperatorError> {
        while rows(&self.taken.elements) < count {
            self.bell.arm();
            match self.poll()? {
                SourceProgress::Pending(_) if rows(&self.taken.elements) < count => {
                    assert!(self.bell.park(Some(PATIENCE)), "the rows never came");
                }
                // The last rows may come with the end.
                SourceProgress::End => {
                    assert!(rows(&self.taken.elements) >= count, "the input goes on");
                }
                _ => self.bell.disarm(),
            }
        }
        Ok(())
    }

    fn ids(&self) -> Vec<i64> {
        let batches = batches(&self.taken.elements);
        let ids = batches.iter().flat_map(|batch| ints(batch, 1));
        ids.map(Option::unwrap).collect()
    }
}

/// A file that appears complete, as the page asks for.
fn put(dir: &Path, name: &str, ids: std::ops::Range<i64>) {
    let text: String = ids
        .map(|id| format!("{{\"id\":{id},\"event_time\":{id}}}\n"))
        .collect();
    let hidden = dir.join(format!(".{name}"));
    fs::write(&hidden, text).unwrap();
    fs::rename(&hidden, dir.join(name)).unwrap();
}

fn watched(dir: &Path, more: &str) -> std::sync::Arc<dyn SourceConnector> {
    let options = format!("path = '*.ndjson'\nwatch_ms = 5\n{SCHEMA}{more}");
    source("ndjson", &options, dir)
}

#[test]
fn files_are_read_as_they_come_each_once_in_the_order_of_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let connector = watched(dir.path(), "watermark = {}");
    assert_eq!(connector.parallelism_max(), None);
    let mut source = Stepped::open(&*connector, 0, 1);
    put(dir.path(), "b.ndjson", 0..3);
    source.until(3).unwrap();
    // What is hidden or unfinished is not looked at.
    fs::write(dir.path().join("c.ndjson.tmp"), "nonsense").unwrap();
    fs::write(dir.path().join(".d.ndjson"), "nonsense").unwrap();
    put(dir.path(), "a.ndjson", 3..5);
    source.until(5).unwrap();
    // A file that was read may go, and one of its name may come.
    fs::remove_file(dir.path().join("b.ndjson")).unwrap();
    put(dir.path(), "e.ndjson", 5..6);
    source.until(6).unwrap();
    assert_eq!(source.ids(), [0, 1, 2, 3, 4, 5]);
    assert_watermarks_hold(&source.taken.elements);
    let start = Instant::now();
    drop(source);
    assert!(
        start.elapsed() < PATIENCE / 10,
        "it stops when nobody reads"
    );
}

#[test]
fn subtasks_share_the_files_that_come() {
    let dir = tempfile::tempdir().unwrap();
    let connector = watched(dir.path(), "");
    let mut sources: Vec<_> = (0..3)
        .map(|index| Stepped::open(&*connector, index, 3))
        .collect();
    for file in 0..30 {
        put(dir.path(), &format!("{file}.ndjson"), file..file + 1);
    }
    let deadline = Instant::now() + PATIENCE;
    let mut ids = Vec::new();
    while ids.len() < 30 && Instant::now() < deadline {
        ids.clear();
        for source in &mut sources {
            let _ = source.poll().unwrap();
            ids.extend(source.ids());
        }
    }
    assert!(
        sources.iter().all(|source| !source.ids().is_empty()),
        "all have a share"
    );
    ids.sort_unstable();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
}

#[test]
fn a_file_is_read_once_whatever_names_lead_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real/deep");
    fs::create_dir_all(&real).unwrap();
    symlink("real", dir.path().join("link")).unwrap();
    put(&real, "a.ndjson", 0..3);
    let absolute = real.display();
    let options = format!(
        "path = ['**/*.ndjson', 'link/deep/*.ndjson', 'real/../real/deep/*.ndjson', '{absolute}/*']\n\
         watch_ms = 5\n{SCHEMA}"
    );
    let connector = source("ndjson", &options, dir.path());
    let mut sources: Vec<_> = (0..3)
        .map(|index| Stepped::open(&*connector, index, 3))
        .collect();
    let mut ids_of = |count: usize| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let _ = sources.iter_mut().map(|s| s.poll().unwrap()).count();
            let mut ids: Vec<i64> = sources.iter().flat_map(Stepped::ids).collect();
            ids.sort_unstable();
            if ids.len() >= count {
                return ids;
            }
            assert!(Instant::now() < deadline, "the rows never came");
        }
    };
    assert_eq!(ids_of(3), [0, 1, 2]);
    // A name with fewer folders, one that is hidden, and one of which the file has yet to come.
    symlink("real/deep/a.ndjson", dir.path().join("a.ndjson")).unwrap();
    symlink("a.ndjson", real.join(".0.ndjson")).unwrap();
    symlink("real/deep/b", dir.path().join("b.ndjson")).unwrap();
    put(&real, "c.ndjson", 3..4);
    assert_eq!(ids_of(4), [0, 1, 2, 3]);
    put(&real, "b", 4..5);
    assert_eq!(ids_of(5), [0, 1, 2, 3, 4]);
}

#[test]
fn a_file_that_was_read_and_changes_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let connector = watched(dir.path(), "");
    let mut source = Stepped::open(&*connector, 0, 1);
    put(dir.path(), "a.ndjson", 0..3);
    source.until(3).unwrap();
    put(dir.path(), "a.ndjson", 3..9);
    let error = source.until(4).unwrap_err().to_string();
    assert!(
        error.contains("a.ndjson: the file has changed since it was read"),
        "{error}"
    );
}

#[test]
fn a_file_that_gets_another_name_is_another_file() {
    let dir = tempfile::tempdir().unwrap();
    let connector = watched(dir.path(), "");
    let mut source = Stepped::open(&*connector, 0, 1);
    put(dir.path(), "a.ndjson", 0..3);
    source.until(3).unwrap();
    fs::rename(dir.path().join("a.ndjson"), dir.path().join("b.ndjson")).unwrap();
    source.until(6).unwrap();
    assert_eq!(source.ids(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_file_that_is_still_being_written_under_its_name_is_an_error_and_not_half_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let connector = watched(dir.path(), "");
    let mut source = Stepped::open(&*connector, 0, 1);
    let file = fs::File::create(dir.path().join("slow.ndjson")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let error = (0..).find_map(|id| {
        assert!(Instant::now() < deadline, "it is noticed");
        writeln!(&file, "{{\"id\":{id},\"event_time\":{id}}}").unwrap();
        source.until(1 + id).err()
    });
    let error = error.unwrap().to_string();
    assert!(
        error.contains("slow.ndjson: the file has changed"),
        "{error}"
    );
}

#[test]
fn hostile_lines_of_standard_input_are_left_out_one_by_one() {
    let (mut write, source) = of_pipe("on_error = 'skip'");
    let mut source_of = Stepped::open(&source, 0, 1);
    let writer = std::thread::spawn(move || {
        let long = "x".repeat(20 << 20);
        write.write_all(b"{\"id\":1}\n\0\n\xff\xfe\n\r\n").unwrap();
        write.write_all(long.as_bytes()).unwrap();
        write.write_all(b"\n{\"id\":2}\n{\"id\":").unwrap();
    });
    source_of.until(2).unwrap();
    let ids = source_of.ids();
    source_of.run().unwrap();
    writer.join().unwrap();
    assert_eq!(ids, [1, 2]);
    assert_eq!(source.stats().read().skipped_rows, 4);
}

#[test]
fn a_watched_folder_may_be_empty_where_the_columns_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |connector: &str, options: &str| {
        let error = try_source(connector, options, dir.path()).err().unwrap();
        error.to_string()
    };
    assert!(refused("ndjson", "path = '*'\nwatch_ms = 5").contains("`schema`"));
    assert!(refused("csv", "path = '*'\nwatch_ms = 5").contains("`schema`"));
    assert!(refused("arrow", "path = '*'\nwatch_ms = 5").contains("`path`"));
    assert!(refused("arrow", "path = '*'\nwatch_ms = 0").contains("`watch_ms`"));
    assert!(refused("csv", "path = '*'").contains("no file matches"));
}

fn of_pipe(options: &str) -> (std::io::PipeWriter, LiveSource) {
    let (read, write) = std::io::pipe().unwrap();
    let options: StdinOptions = toml::from_str(&format!("{SCHEMA}{options}")).unwrap();
    let name = "stdin".to_owned();
    let source = LiveSource::of_input(name, read.into(), options, Path::new("/")).unwrap();
    (write, source)
}

#[test]
fn lines_of_standard_input_come_at_once_and_end_with_it() {
    for (form, lines) in [
        (
            "ndjson",
            [
                "{\"id\":1,\"event_time\":7}\n",
                "{\"id\":2}\n",
                "{\"id\":3}",
            ],
        ),
        ("csv", ["1,7\n", "2,\n", "3,"]),
    ] {
        let (mut write, connector) = of_pipe(&format!("form = '{form}'"));
        let mut source = Stepped::open(&connector, 0, 1);
        write.write_all(lines[0].as_bytes()).unwrap();
        source.until(1).unwrap();
        write.write_all(lines[1].as_bytes()).unwrap();
        source.until(2).unwrap();
        write.write_all(lines[2].as_bytes()).unwrap();
        drop(write);
        let elements = source.run().unwrap();
        let ids: Vec<_> = batches(&elements).iter().flat_map(|b| ints(b, 1)).collect();
        assert_eq!(ids, [Some(1), Some(2), Some(3)]);
        assert_eq!(ints(batches(&elements)[0], 0), [Some(7)]);
    }
}

#[test]
fn a_bad_line_of_standard_input_is_named_or_skipped() {
    for (on_error, is_good) in [("fail", false), ("skip", true)] {
        let (mut write, connector) = of_pipe(&format!("on_error = '{on_error}'"));
        write
            .write_all(b"{\"id\":1}\nnonsense\n{\"id\":2}\n")
            .unwrap();
        drop(write);
        let result = Stepped::open(&connector, 0, 1).run();
        match result {
            Ok(elements) => {
                assert!(is_good);
                assert_eq!(rows(&elements), 2);
                assert_eq!(connector.stats().read().skipped_rows, 1);
            }
            Err(error) => {
                assert!(!is_good);
                assert!(error.to_string().contains("stdin:2: "), "{error}");
            }
        }
    }
}

#[test]
fn bad_lines_of_standard_input_go_to_a_file_with_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.ndjson");
    let skip = format!("on_error = 'skip'\nbad_rows = '{}'", bad.display());
    let (mut write, connector) = of_pipe(&skip);
    assert_eq!(connector.bad_rows_path().as_ref(), Some(&bad));
    write
        .write_all(b"{\"id\":1}\nnonsense\n{\"id\":2}\n{\"id\":\"x\"}")
        .unwrap();
    drop(write);
    assert_eq!(rows(&Stepped::open(&connector, 0, 1).run().unwrap()), 2);
    let written = std::fs::read_to_string(&bad).unwrap();
    let left_out: Vec<serde_json::Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |key: &str| -> Vec<_> { left_out.iter().map(|row| row[key].clone()).collect() };
    assert_eq!(told("file"), ["stdin", "stdin"]);
    assert_eq!(told("line"), [2, 4]);
    assert_eq!(told("row"), ["nonsense", "{\"id\":\"x\"}"]);
}

#[test]
fn a_file_that_standard_input_comes_from_is_not_overwritten_with_its_bad_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in.ndjson");
    std::fs::write(&path, "nonsense\n").unwrap();
    let of_file = |options: &str| {
        let options: StdinOptions = toml::from_str(&format!("{SCHEMA}{options}")).unwrap();
        let input = std::fs::File::open(&path).unwrap();
        LiveSource::of_input("stdin".to_owned(), input.into(), options, dir.path())
    };
    let error = of_file("on_error = 'skip'\nbad_rows = 'in.ndjson'")
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("that this source reads"),
        "{error}"
    );
    let error = of_file("bad_rows = 'bad.ndjson'").err().unwrap();
    assert!(
        error.to_string().contains("`on_error = \"skip\"`"),
        "{error}"
    );
    assert!(of_file("on_error = 'skip'\nbad_rows = 'bad.ndjson'").is_ok());
}

#[test]
fn a_source_that_waits_for_input_stops_when_it_is_dropped() {
    let (write, connector) = of_pipe("");
    let mut source = Stepped::open(&connector, 0, 1);
    assert_eq!(source.poll().unwrap(), SourceProgress::Pending(None));
    let start = Instant::now();
    drop(source);
    assert!(start.elapsed() < PATIENCE / 10);
    drop(write);
    // Its input is gone with it.
    let error = Stepped::open(&connector, 0, 1).run().unwrap_err();
    assert!(error.to_string().contains("it has been read"), "{error}");
}

#[test]
fn a_socket_gives_the_lines_of_its_first_connection() {
    let options = toml::from_str(&format!("port = 0\n{SCHEMA}")).unwrap();
    let connector = LiveSource::socket(options, Path::new("/")).unwrap();
    assert_eq!(connector.parallelism_max(), Some(1));
    let mut source = Stepped::open(&connector, 0, 2);
    let idle = Stepped::open(&connector, 1, 2).run().unwrap();
    assert_eq!(rows(&idle), 0);
    let mut stream = TcpStream::connect(connector.address().unwrap()).unwrap();
    stream.write_all(b"{\"id\":1}\n{\"id\":2").unwrap();
    source.until(1).unwrap();
    stream.write_all(b"2}\n").unwrap();
    drop(stream);
    let elements = source.run().unwrap();
    let ids: Vec<_> = batches(&elements).iter().flat_map(|b| ints(b, 1)).collect();
    assert_eq!(ids, [Some(1), Some(22)]);
}
