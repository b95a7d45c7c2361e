//! How files are cut, and that every row of a file is read once however it is.

use std::fs;

use super::resume::{some_rows, write_file};
use super::*;

/// The numbers of the rows that all subtasks read, in order.
fn ids(connector: &dyn SourceConnector, parallelism: u32, column: usize) -> Vec<i64> {
    let elements = run_all(connector, parallelism);
    let batches = batches(&elements);
    let ids = batches.iter().flat_map(|batch| ints(batch, column));
    let mut ids: Vec<_> = ids.map(Option::unwrap).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn one_large_file_is_read_by_several_subtasks_and_every_row_once() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 1000;
    write_file("ndjson", "path = 'a.ndjson'", dir.path(), rows, 100);
    write_file("arrow", "path = 'a.arrow'", dir.path(), rows, 100);
    write_file(
        "parquet",
        "path = 'a.parquet'\nrow_group_rows = 100",
        dir.path(),
        rows,
        100,
    );
    let lines: String = (0..rows)
        .map(|id| format!("{id},{id},\"a \"\"{id}\"\"\"\r\n"))
        .collect();
    let header = "\u{feff}\nevent_time,id,text\n";
    fs::write(dir.path().join("a.csv"), format!("{header}\n{lines}")).unwrap();
    fs::write(dir.path().join("b.csv"), lines.trim_end()).unwrap();
    let schema = "[{ name = 'event_time', type = 'int64' }, { name = 'id', type = 'int64' }, \
                  { name = 'text', type = 'utf8' }]";
    let bare = format!("header = false\nschema = {schema}\nquoted_line_ends = false");
    for split_bytes in [50, 1000, 4096, 1 << 30] {
        for (connector, options) in [
            (
                "ndjson",
                format!("path = 'a.ndjson'\nsplit_bytes = {split_bytes}"),
            ),
            (
                "arrow",
                format!("path = 'a.arrow'\nsplit_bytes = {split_bytes}"),
            ),
            (
                "csv",
                format!("path = 'a.csv'\nsplit_bytes = {split_bytes}\nquoted_line_ends = false"),
            ),
            (
                "csv",
                format!("path = 'a.csv'\nsplit_bytes = {split_bytes}"),
            ),
            (
                "csv",
                format!("path = 'b.csv'\nsplit_bytes = {split_bytes}\n{bare}"),
            ),
            ("parquet", "path = 'a.parquet'".to_owned()),
        ] {
            let connector = source(connector, &options, dir.path());
            for parallelism in [1, 4] {
                let seen = ids(&*connector, parallelism, 1);
                assert!(
                    seen.iter().copied().eq(0..rows),
                    "{options}: {}",
                    seen.len()
                );
            }
        }
    }
}

#[test]
fn a_file_is_cut_where_it_can_be_and_says_how_often() {
    let dir = tempfile::tempdir().unwrap();
    let all = some_rows(1000);
    write_file("ndjson", "path = 'a.ndjson'", dir.path(), 1000, 100);
    write_file("ndjson", "path = 'a.ndjson.gz'", dir.path(), 1000, 100);
    write_file("csv", "path = 'a.csv'", dir.path(), 1000, 100);
    write_file("arrow", "path = 'a.arrow'", dir.path(), 1000, 100);
    write_file(
        "arrow",
        "path = 'a.arrows'\nform = 'stream'",
        dir.path(),
        1000,
        100,
    );
    let bytes = fs::metadata(dir.path().join("a.ndjson")).unwrap().len();
    let count = |connector: &str, options: &str| {
        // Less than a batch of rows takes.
        let options = format!("{options}\nsplit_bytes = 2000");
        let connector = source(connector, &options, dir.path());
        (connector.parallelism_max().unwrap(), connector.describe())
    };
    let (splits, described) = count("ndjson", "path = 'a.ndjson'");
    assert_eq!(splits as u64, bytes.div_ceil(2000));
    assert!(
        described.ends_with(&format!(", {splits} splits")),
        "{described}"
    );
    assert_eq!(count("ndjson", "path = 'a.ndjson.gz'").0, 1);
    // A line end may stand in quotes, so that no one knows where a row begins.
    assert_eq!(count("csv", "path = 'a.csv'").0, 1);
    assert_eq!(count("arrow", "path = 'a.arrow'").0, all.num_rows() / 100);
    assert_eq!(count("arrow", "path = 'a.arrows'").0, 1);
    for connector in ["ndjson", "csv", "arrow"] {
        let options = format!("path = 'a.{connector}'\nsplit_bytes = 0");
        let error = try_source(connector, &options, dir.path()).err().unwrap();
        assert!(error.to_string().contains("`split_bytes`: is 0"), "{error}");
    }
}

#[test]
fn the_pieces_of_a_file_are_one_stream_for_watermarks() {
    let dir = tempfile::tempdir().unwrap();
    write_file("ndjson", "path = 'a.ndjson'", dir.path(), 1000, 100);
    let run = |split_bytes: u32, parallelism: u32| {
        let options = format!("path = 'a.ndjson'\nsplit_bytes = {split_bytes}");
        let mut options =
            SourceOptions::read("ndjson", toml::from_str::<toml::Table>(&options).unwrap())
                .unwrap();
        *options.watermark_mut().unwrap() = Some(crate::connect::WatermarkOptions {
            out_of_orderness_ms: 5,
            ..Default::default()
        });
        let connector = options.connect(dir.path()).unwrap();
        let runs = (0..parallelism).map(|index| {
            let elements = Stepped::open(&*connector, index, parallelism)
                .run()
                .unwrap();
            assert_watermarks_hold(&elements);
            elements
        });
        runs.collect::<Vec<_>>()
    };
    for parallelism in [1, 3] {
        for elements in run(4000, parallelism) {
            let watermarks = elements.len() - batches(&elements).len();
            assert!(
                watermarks > 2,
                "a watermark comes before the last piece is open"
            );
        }
    }
}

#[test]
fn a_bad_row_is_named_by_its_line_in_the_file_whichever_piece_it_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let line = |number: usize| match number % 50 {
        0 => format!("bad {number}\n"),
        7 => "\n".to_owned(),
        _ => format!("{{\"id\":{number}}}\n"),
    };
    let text: String = (1..=1000).map(line).collect();
    fs::write(dir.path().join("a.ndjson"), &text).unwrap();
    let schema = "schema = [{ name = 'id', type = 'int64' }]";
    for split_bytes in [100, 1000, 1 << 20] {
        let options = format!(
            "path = 'a.ndjson'\nsplit_bytes = {split_bytes}\n{schema}\non_error = 'skip'\n\
             bad_rows = 'bad'"
        );
        let connector = source("ndjson", &options, dir.path());
        run_all(&*connector, 3);
        assert_eq!(connector.stats().read().skipped_rows, 20);
        let bad = fs::read_to_string(dir.path().join("bad")).unwrap();
        for line in bad.lines() {
            let bad: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(bad["row"], format!("bad {}", bad["line"]), "{bad}");
        }
        assert_eq!(bad.lines().count(), 20);
    }
    let options = format!("path = 'a.ndjson'\nsplit_bytes = 2000\n{schema}");
    let connector = source("ndjson", &options, dir.path());
    let error = Stepped::open(&*connector, 3, 4)
        .run()
        .unwrap_err()
        .to_string();
    let (_, line) = error.split_once("a.ndjson:").unwrap();
    let line: usize = line.split(':').next().unwrap().parse().unwrap();
    assert_eq!(line % 50, 0, "{error}");
}
