//! Operators of a job file that keep state by key, against small computations over all rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::running::{Cells, Random, Row, counts, read, read_sorted, run, sink, source, write};

fn job(operator: &str) -> String {
    let operator = format!("[operators.results]\ninput = \"rows\"\n{operator}");
    let parallelism = "job = { parallelism = 2 }\n".to_owned();
    [
        parallelism,
        source("rows"),
        operator,
        sink("out", "results"),
    ]
    .concat()
}

/// Rows that are nowhere late, in a file.
fn input(folder: &Path) -> Vec<Row> {
    let rows = Random::new().rows(120, 9_000, 4);
    write(folder, "rows.csv", &rows);
    rows
}

fn by_key(rows: &[Row]) -> BTreeMap<Option<i64>, Vec<Row>> {
    let mut by_key: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_key.entry(row.key).or_default().push(*row);
    }
    by_key
}

#[test]
fn sessions_last_as_long_as_rows_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let rows = input(folder.path());
    let operator = "type = \"session\"\nkey = \"key\"\ngap = \"100ms\"\naggregates = [\"count(*) AS \
                    n\", \"sum(value * 2) AS total\"]\n";
    run(&job(operator), folder.path());
    let mut expected: Vec<Cells> = Vec::new();
    for (key, mut rows) in by_key(&rows) {
        rows.sort_by_key(|row| row.time);
        for session in rows.chunk_by(|one, other| other.time - one.time < 100) {
            let (first, last) = (session[0].time, session[session.len() - 1].time);
            let total = session.iter().map(|row| 2 * row.value).sum();
            let count = session.len() as i64;
            let cells = [last + 99, first, last + 100].map(Some).to_vec();
            expected.push([cells, vec![key, Some(count), Some(total)]].concat());
        }
    }
    expected.sort();
    assert_eq!(read_sorted(folder.path(), "out.csv"), expected);
}

#[test]
fn a_count_window_is_so_many_rows_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let rows = input(folder.path());
    let operator = "type = \"count_window\"\nkey = \"key\"\nrows = 7\naggregates = [\"max(value) AS \
                    highest\"]\n";
    run(&job(operator), folder.path());
    let mut expected: Vec<Cells> = Vec::new();
    for (key, rows) in by_key(&rows) {
        for (number, window) in (0..).zip(rows.chunks(7)) {
            let latest = window.iter().map(|row| row.time).max();
            let highest = window.iter().map(|row| row.value).max();
            let many = window.len() as i64;
            expected.push(vec![latest, Some(number), Some(many), key, highest]);
        }
    }
    expected.sort();
    assert_eq!(read_sorted(folder.path(), "out.csv"), expected);
}

#[test]
fn deduplicate_keeps_the_first_row_of_a_key_and_counts_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let rows = input(folder.path());
    for ttl_ms in [None, Some(1_000)] {
        let ttl = ttl_ms.map_or_else(String::new, |ms| format!("ttl = \"{ms}ms\"\n"));
        let operator = format!("type = \"deduplicate\"\nkey = \"key\"\n{ttl}");
        let report = run(&job(&operator), folder.path());
        let mut first: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        let mut expected: Vec<Cells> = Vec::new();
        for row in &rows {
            let is_again = first
                .get(&row.key)
                .is_some_and(|first| ttl_ms.is_none_or(|ttl_ms| row.time < first + ttl_ms));
            if !is_again {
                first.insert(row.key, row.time);
                expected.push(vec![Some(row.time), row.key, Some(row.value)]);
            }
        }
        let duplicates = counts(&report, "results").duplicate_rows;
        assert_eq!(duplicates as usize, rows.len() - expected.len());
        expected.sort();
        assert_eq!(read_sorted(folder.path(), "out.csv"), expected);
    }
}

#[test]
fn top_n_gives_the_first_rows_of_each_key_and_window() {
    let folder = tempfile::tempdir().unwrap();
    let rows = input(folder.path());
    let operator = "type = \"top_n\"\nkey = \"key\"\nrows = 2\norder = [\"value DESC\"]\n";
    run(&job(operator), folder.path());
    let mut expected: Vec<Cells> = Vec::new();
    for (key, mut rows) in by_key(&rows) {
        rows.sort_by_key(|row| -row.value);
        for (rank, row) in (1..).zip(rows.iter().take(2)) {
            expected.push(vec![Some(row.time), key, Some(row.value), Some(rank)]);
        }
    }
    expected.sort();
    let (header, mut results) = read(folder.path(), "out.csv");
    results.sort();
    assert_eq!(header, ["event_time", "key", "value", "rank"]);
    assert_eq!(results, expected);

    let windowed = format!("{operator}size = \"2s\"\n");
    let windowed = windowed.replace("value DESC", "event_time\", \"value asc");
    run(&job(&windowed), folder.path());
    let mut expected: Vec<Cells> = Vec::new();
    for (key, mut rows) in by_key(&rows) {
        rows.sort_by_key(|row| (row.time, row.value));
        for window in rows.chunk_by(|one, other| one.time / 2_000 == other.time / 2_000) {
            let start = window[0].time / 2_000 * 2_000;
            for (rank, row) in (1..).zip(window.iter().take(2)) {
                let cells = [start + 1_999, start, start + 2_000, row.time].map(Some);
                let others = vec![key, Some(row.value), Some(rank)];
                expected.push([cells.to_vec(), others].concat());
            }
        }
    }
    expected.sort();
    let (header, mut results) = read(folder.path(), "out.csv");
    results.sort();
    assert_eq!(header[2..5], ["window_end", "event_time_row", "key"]);
    assert_eq!(results, expected);
}

/// Two files that are read one after the other: after the first the watermark is 20 s.
fn late_input(folder: &Path, late: &[Row]) -> String {
    let row = |time| Row {
        time,
        key: Some(1),
        value: 0,
    };
    write(
        folder,
        "rows-1.csv",
        &[row(1_000), row(18_000), row(30_000)],
    );
    write(folder, "rows-2.csv", late);
    let rows = source("rows").replace("\"rows.csv\"", "\"rows-*.csv\"");
    rows.replace("\"10s\" }", "\"10s\", splits = \"ordered\" }")
}

#[test]
fn late_rows_are_dropped_or_go_to_a_side_output_or_are_accepted_and_each_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let late = [1_500, 18_500, 31_000].map(|time| Row {
        time,
        key: Some(1),
        value: 7,
    });
    let source = late_input(folder.path(), &late);
    // With windows of 1 s and 2 s of lateness, at 20 s those that end after 18 s take rows in.
    let window = "[operators.results]\ntype = \"window\"\ninput = \"rows\"\nkey = \"key\"\n\
                  size = \"1s\"\nallowed_lateness = \"2s\"\naggregates = [\"count(*) AS n\"]\n";
    let window = [source.clone(), window.to_owned(), sink("out", "results")].concat();
    let aside = [window.clone(), sink("late", "results.late")].concat();
    for (job, discarded) in [(&aside, 0), (&window, 1)] {
        let report = run(job, folder.path());
        let counted = counts(&report, "results");
        assert_eq!((counted.late_rows, counted.accepted_late_rows), (1, 1));
        let total: u64 = report.tasks.iter().map(|task| task.discarded_rows).sum();
        assert_eq!(total, discarded);
        let results = read(folder.path(), "out.csv").1;
        let of_window = |start| {
            let results = results.iter().filter(|row| row[1] == Some(start));
            results.filter_map(|row| row[4]).collect::<Vec<i64>>()
        };
        assert_eq!(of_window(1_000), [1]);
        assert_eq!(of_window(18_000), [1, 2], "the result comes anew, in full");
    }
    let late = vec![vec![Some(1_500), Some(1), Some(7)]];
    assert_eq!(read_sorted(folder.path(), "late.csv"), late);

    let session = "[operators.results]\ntype = \"session\"\ninput = \"rows\"\nkey = \"key\"\n\
                   gap = \"1s\"\nallowed_lateness = \"2s\"\naggregates = [\"count(*) AS n\"]\n";
    let job = [source, session.to_owned(), sink("out", "results")].concat();
    let counted = counts(&run(&job, folder.path()), "results");
    assert_eq!((counted.late_rows, counted.accepted_late_rows), (1, 1));
}

#[test]
fn a_window_tells_early_after_so_many_rows_and_in_full_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let late = [30_001, 30_002, 30_003].map(|time| Row {
        time,
        key: Some(1),
        value: 0,
    });
    let source = late_input(folder.path(), &late);
    let window = "[operators.results]\ntype = \"window\"\ninput = \"rows\"\nkey = \"key\"\n\
                  size = \"100s\"\nearly_rows = 2\naggregates = [\"count(*) AS n\"]\n";
    run(
        &[source, window.to_owned(), sink("out", "results")].concat(),
        folder.path(),
    );
    let results = read(folder.path(), "out.csv").1;
    let told: Vec<_> = results.iter().filter_map(|row| row[4]).collect();
    assert_eq!(
        told,
        [3, 6, 6],
        "a batch is a file here, and each has 3 rows"
    );
}

#[test]
fn a_window_tells_early_after_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let operator = "[sources.rows]\nconnector = \"generator\"\nrows = 2000\nrate = 1000\nbatch_rows = 10\n\
                    [operators.results]\ninput = \"rows\"\ntype = \"window\"\nsize = \"1000d\"\n\
                    early_every = \"100ms\"\naggregates = [\"count(*) AS n\"]\n";
    run(
        &[operator.to_owned(), sink("out", "results")].concat(),
        folder.path(),
    );
    let results = read(folder.path(), "out.csv").1;
    let told: Vec<_> = results.iter().filter_map(|row| row[3]).collect();
    assert!(told.len() > 3, "{told:?}");
    assert!(told.is_sorted(), "{told:?}");
    assert_eq!(told.last(), Some(&2_000));
    let different: BTreeSet<_> = told.iter().collect();
    assert!(different.len() > 3, "{told:?}");
}
