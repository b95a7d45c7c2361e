//! Jobs in stages, and what is sorted and limited, as job files say it.

use crate::running::{Cells, Random, Row, counts, read, run, sink, source, write};
use crate::sample::load;

fn cells(row: &Row) -> Cells {
    vec![Some(row.time), row.key, Some(row.value)]
}

#[test]
fn sorted_and_limited_rows_are_those_of_a_sorted_list() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let rows = random.rows(3000, 100, 10);
    write(folder.path(), "rows.csv", &rows);
    let name = |first: bool| if first { "FIRST" } else { "LAST" };
    for (descending, first, memory_max) in [
        (false, false, "1MiB"),
        (true, false, "1kB"),
        (false, true, "1kB"),
        (true, true, "1MiB"),
    ] {
        let direction = if descending { "desc" } else { "asc" };
        let nulls = name(first);
        let job = format!(
            "[job]\nparallelism = 2\nspill_dir = \".\"\n{}\
             [operators.sorted]\ntype = \"sort\"\ninput = \"rows\"\n\
             order = [\"key {direction} NULLS {nulls}\", \"event_time\"]\n\
             memory_max = \"{memory_max}\"\ncompression = \"lz4\"\n\
             [operators.some]\ntype = \"limit\"\ninput = \"sorted\"\nrows = 100\noffset = 7\n{}{}",
            source("rows"),
            sink("all", "sorted"),
            sink("limited", "some"),
        );
        let report = run(&job, folder.path());
        let mut expected = rows.clone();
        expected.sort_by_key(|row| {
            let key = row.key.map(|key| if descending { -key } else { key });
            (key.is_none() != first, key, row.time)
        });
        let expected: Vec<Cells> = expected.iter().map(cells).collect();
        assert_eq!(read(folder.path(), "all.csv").1, expected);
        assert_eq!(read(folder.path(), "limited.csv").1, expected[7..107]);
        let is_spilled = counts(&report, "sorted").spilled_bytes > 0;
        assert_eq!(is_spilled, memory_max == "1kB");
    }
    let left = std::fs::read_dir(folder.path()).unwrap();
    let mut left = left.map(|entry| entry.unwrap().file_name());
    assert!(left.all(|name| name.to_string_lossy().ends_with(".csv")));
}

#[test]
fn rows_that_are_spilled_between_stages_give_what_they_would_without() {
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "rows.csv", &random.rows(3000, 10_000, 10));
    let window = "type = \"window\"\nkey = \"key\"\nsize = \"1s\"\n\
                  aggregates = [\"count(*) AS n\", \"sum(value) AS total\"]\n";
    let results = |parallelism: u32, is_spilled: bool| {
        let input = if is_spilled { "spilled" } else { "rows" };
        let blocking = match is_spilled {
            true => "[operators.spilled]\ntype = \"blocking\"\ninput = \"rows\"\nuid = \"u\"\n",
            false => "",
        };
        let job = format!(
            "[job]\nparallelism = {parallelism}\nspill_dir = \".\"\n{}{blocking}\
             [operators.windows]\n{window}input = \"{input}\"\n{}",
            source("rows"),
            sink("results", "windows"),
        );
        run(&job, folder.path());
        let (header, mut rows) = read(folder.path(), "results.csv");
        rows.sort();
        (header, rows)
    };
    let expected = results(1, false);
    assert!(expected.1.len() > 50);
    for parallelism in [1, 3] {
        assert_eq!(results(parallelism, true), expected);
    }
}

#[test]
fn what_waits_for_an_end_that_never_comes_is_refused_at_its_table() {
    for (operator, line) in [("blocking", 3), ("sort\"\norder = \"id", 3)] {
        let job = format!(
            "[sources.numbers]\nconnector = \"generator\"\n[operators.op]\n\
             type = \"{operator}\"\ninput = \"numbers\"\n\
             [sinks.out]\nconnector = \"blackhole\"\ninput = \"op\"\n"
        );
        let error = load(&job).unwrap().plan(vec![None]).err().unwrap();
        let place = (error.place().line, error.place().key.as_str());
        assert_eq!(place, (Some(line), "operators.op"), "{error}");
        let message = error.to_string();
        assert!(
            message.contains("the source numbers never ends"),
            "{message}"
        );
    }
}
