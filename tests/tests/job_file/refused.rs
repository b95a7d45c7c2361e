//! Whatever does not fit is refused before anything runs, with its line and its key.

use std::path::Path;

use ringway::job::file::{Language, LoadedJob, Overrides};

use crate::sample::{changed, load, load_at};

/// The job with one thing changed is refused at `line` and `key`, with all of `says`.
#[track_caller]
fn refused(from: &str, to: &str, line: usize, key: &str, says: &[&str]) {
    let error = load(&changed(from, to)).expect_err("it does not fit");
    let message = error.to_string();
    assert_eq!(
        (error.place().line, error.place().key.as_str()),
        (Some(line), key),
        "{message}"
    );
    for part in says {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.starts_with(&format!("line {line}")), "{message}");
}

#[test]
fn what_is_not_toml_is_refused_at_its_line() {
    refused("rows = 100", "rows = ", 6, "", &[]);
    refused("rows = 100", "rows = 100\nrows = 7", 7, "", &["duplicate"]);
    refused(
        "rows = 100",
        "rows = 99999999999999999999",
        6,
        "",
        &["64 bits"],
    );
}

#[test]
fn an_unknown_key_is_refused_and_the_one_that_was_meant_is_named() {
    let path = "operators.even";
    refused(
        "where =",
        "were =",
        10,
        &format!("{path}.were"),
        &["did you mean `where`?"],
    );
    refused(
        "rows =",
        "row =",
        6,
        "sources.numbers.row",
        &["did you mean `rows`?"],
    );
    refused(
        "parallelism",
        "paralelism",
        3,
        "job.paralelism",
        &["did you mean `parallelism`?"],
    );
    refused(
        "[sinks.out]",
        "[sink.out]",
        20,
        "sink",
        &["did you mean `sinks`?"],
    );
    let late = "size = \"1s\"\nlateness = \"1s\"";
    refused(
        "size = \"1s\"",
        late,
        16,
        "operators.per_key.lateness",
        &["unknown key `lateness`"],
    );
    let to = "input = \"even\"\nparalelism = 2";
    let says = ["did you mean `parallelism`?"];
    refused(
        "input = \"even\"",
        to,
        14,
        "operators.per_key.paralelism",
        &says,
    );
}

#[test]
fn the_keys_that_there_are_are_listed_once() {
    let from = "connector = \"generator\"\nrows = 100";
    let csv = "connector = \"csv\"\npath = \"data/orders.csv\"\nsomething_else = 1";
    let message = load(&changed(from, csv)).unwrap_err().to_string();
    assert_eq!(message.matches("`watermark`").count(), 1, "{message}");
}

#[test]
fn a_missing_key_is_refused_at_its_table() {
    refused(
        "where = \"id % 2 = 0\"\n",
        "",
        7,
        "operators.even",
        &["`where` is missing"],
    );
    refused(
        "input = \"numbers\"\n",
        "",
        7,
        "operators.even",
        &["`input` is missing"],
    );
    refused(
        "connector = \"generator\"\n",
        "",
        4,
        "sources.numbers",
        &["`connector` is missing"],
    );
    refused(
        "size = \"1s\"\n",
        "",
        11,
        "operators.per_key",
        &["`size` is missing"],
    );
}

#[test]
fn a_value_of_another_type_is_refused_at_its_line() {
    refused(
        "= 100",
        "= \"many\"",
        6,
        "sources.numbers.rows",
        &["string \"many\""],
    );
    refused(
        "= 100",
        "= -1",
        6,
        "sources.numbers.rows",
        &["integer `-1`"],
    );
    refused(
        "\"1s\"",
        "1000",
        15,
        "operators.per_key.size",
        &["such as \"24h\""],
    );
    refused(
        "\"1s\"",
        "\"1 sec\"",
        15,
        "operators.per_key.size",
        &["units are ms, s, m, h, d"],
    );
    refused(
        "[job]\nparallelism = 2",
        "job = 7",
        2,
        "job",
        &["integer `7`"],
    );
    refused(
        "\"sum(value / 2) AS total\"",
        "7",
        18,
        "operators.per_key.aggregates.1",
        &["integer"],
    );
}

#[test]
fn more_subtasks_than_key_groups_are_refused() {
    refused(
        "parallelism = 2",
        "parallelism = 129",
        3,
        "job.parallelism",
        &["128"],
    );
    refused(
        "parallelism = 2",
        "parallelism = 0",
        3,
        "job.parallelism",
        &["0"],
    );
    let to = "key = [\"key\"]\nparallelism = 200";
    refused(
        "key = [\"key\"]",
        to,
        15,
        "operators.per_key.parallelism",
        &["128 key groups"],
    );
}

#[test]
fn an_unknown_stream_is_refused_and_the_one_that_was_meant_is_named() {
    let key = "operators.per_key.input";
    refused(
        "\"even\"",
        "\"evn\"",
        13,
        key,
        &["no stream `evn`", "did you mean `even`?"],
    );
    refused(
        "\"even\"",
        "[\"even\", \"odd\"]",
        13,
        &format!("{key}.1"),
        &["no stream `odd`"],
    );
    refused(
        "\"even\"",
        "\"even.late\"",
        13,
        key,
        &["no stream `even.late`"],
    );
    refused("\"even\"", "\"out\"", 13, key, &["`out` is a sink"]);
    refused(
        "\"even\"",
        "[\"even\", \"even\"]",
        13,
        &format!("{key}.1"),
        &["twice"],
    );
    refused("\"even\"", "[]", 13, key, &["empty"]);
}

#[test]
fn unknown_operators_and_connectors_are_refused() {
    let says = ["no operator of the type `filtr`", "did you mean `filter`?"];
    refused("\"filter\"", "\"filtr\"", 8, "operators.even.type", &says);
    let says = [
        "no source connector `genrator`",
        "did you mean `generator`?",
    ];
    refused(
        "\"generator\"",
        "\"genrator\"",
        5,
        "sources.numbers.connector",
        &says,
    );
    let says = ["no sink connector `file`", "`parquet`"];
    refused(
        "\"blackhole\"",
        "\"file\"",
        21,
        "sinks.out.connector",
        &says,
    );
}

#[test]
fn inputs_that_form_a_cycle_are_refused() {
    let error = load(&changed(
        "input = \"numbers\"",
        "input = [\"numbers\", \"per_key\"]",
    ));
    let message = error.unwrap_err().to_string();
    assert!(
        message.starts_with("line 9, key operators.even.input: "),
        "{message}"
    );
    assert!(message.contains("even -> per_key -> even"), "{message}");
    refused(
        "\"numbers\"",
        "\"even\"",
        9,
        "operators.even.input",
        &["even -> even"],
    );
}

#[test]
fn an_expression_that_does_not_fit_is_refused_with_its_place() {
    let key = "operators.even.where";
    refused("id % 2 = 0", "id % = 0", 10, key, &["column"]);
    refused(
        "id % 2 = 0",
        "ids % 2 = 0",
        10,
        key,
        &["at column 1 of it", "no column `ids`"],
    );
    refused(
        "id % 2 = 0",
        "id % 2",
        10,
        key,
        &["where a condition is needed"],
    );
    refused(
        "id % 2 = 0",
        "id = 'a' + 1",
        10,
        key,
        &["arithmetic needs numbers"],
    );
    let aggregate = "operators.per_key.aggregates.1";
    refused(
        "sum(value / 2)",
        "median(value)",
        18,
        aggregate,
        &["median", "count, sum, min"],
    );
    refused(
        "sum(value / 2)",
        "sum(valu)",
        18,
        aggregate,
        &["no column `valu`"],
    );
    refused(
        "AS total",
        "AS n",
        18,
        aggregate,
        &["two aggregates are named `n`"],
    );
    let map = "type = \"map\"\ninput = \"numbers\"\nselect = [\n\"id\",\n\"key + 1\"]";
    let from = "type = \"filter\"\ninput = \"numbers\"\nwhere = \"id % 2 = 0\"";
    refused(from, map, 12, "operators.even.select.1", &["has no name"]);
}

#[test]
fn an_expression_of_several_lines_says_which_of_them() {
    let to = "where = \"\"\"id > 0\n  AND ids < 7\"\"\"";
    let says = ["at line 2, column 7 of it"];
    refused(
        "where = \"id % 2 = 0\"",
        to,
        10,
        "operators.even.where",
        &says,
    );
}

#[test]
fn a_key_that_is_none_is_refused() {
    let key = "operators.per_key.key";
    refused(
        "[\"key\"]",
        "[\"kee\"]",
        14,
        &format!("{key}.0"),
        &["did you mean `key`?"],
    );
    refused("[\"key\"]", "[]", 14, key, &["empty"]);
    let to = "key = [\"key\"]\nexchange = \"rebalance\"";
    refused(
        "key = [\"key\"]",
        to,
        15,
        "operators.per_key.exchange",
        &["rows go by key"],
    );
    let to = "exchange = \"key\"";
    refused(
        "key = [\"key\"]",
        to,
        14,
        "operators.per_key.exchange",
        &["needs the columns"],
    );
    let to = "parallelism = 2";
    refused(
        "key = [\"key\"]",
        to,
        14,
        "operators.per_key.parallelism",
        &["without a `key`"],
    );
}

#[test]
fn windows_that_leave_gaps_or_have_no_length_are_refused() {
    refused(
        "\"1s\"",
        "\"0s\"",
        15,
        "operators.per_key.size",
        &["at least 1 ms"],
    );
    let to = "size = \"1s\"\nslide = \"2s\"";
    refused(
        "size = \"1s\"",
        to,
        16,
        "operators.per_key.slide",
        &["leave gaps"],
    );
}

#[test]
fn the_event_time_stays_the_first_column() {
    let from = "type = \"filter\"\ninput = \"numbers\"\nwhere = \"id % 2 = 0\"";
    let map = |select: &str| format!("type = \"map\"\ninput = \"numbers\"\nselect = {select}");
    for select in [
        "[\"id\", \"key\", \"value\"]",
        "\"*\"",
        "\"event_time + 1 AS event_time, key, value\"",
    ] {
        load(&changed(from, &map(select))).unwrap();
    }
    let key = "operators.even.select";
    refused(
        from,
        &map("\"key, event_time, value\""),
        10,
        key,
        &["must be the first column"],
    );
    refused(
        from,
        &map("\"'x' AS event_time, key\""),
        10,
        key,
        &["must be Int64"],
    );
}

#[test]
fn streams_of_different_columns_make_no_union() {
    let to =
        "[operators.slim]\ntype = \"map\"\ninput = \"numbers\"\nselect = \"id\"\n[operators.even]";
    let job = changed("[operators.even]", to);
    let job = job.replace(
        "input = \"numbers\"\nwhere",
        "input = [\"numbers\", \"slim\"]\nwhere",
    );
    let error = load(&job).unwrap_err();
    assert_eq!(error.place().key, "operators.even.input.1");
    assert_eq!(error.place().line, Some(13));
    assert!(error.to_string().contains("the columns differ"), "{error}");
}

#[test]
fn a_name_stands_for_one_thing() {
    let says = ["`numbers` is also in `sources`"];
    refused(
        "[operators.even]",
        "[operators.numbers]",
        7,
        "operators.numbers",
        &says,
    );
    refused(
        "[operators.even]",
        "[operators.\"e.v\"]",
        7,
        "operators.e.v",
        &["no name"],
    );
    let from = "[sources.numbers]\nconnector = \"generator\"\nrows = 100";
    let to = "[sources]\nnumbers = 7";
    refused(from, to, 5, "sources.numbers", &["expected a table"]);
}

#[test]
fn the_same_uid_twice_is_refused() {
    let from = "rows = 100\n[operators.even]";
    let to = "uid = \"one\"\n[operators.even]\nuid = \"one\"";
    let says = ["`numbers` has the uid `one` too"];
    refused(from, to, 8, "operators.even.uid", &says);
}

#[test]
fn what_only_the_plan_shows_is_refused_at_its_table() {
    let refused = |from: &str, to: &str, line: usize, key: &str, says: &str| {
        let mut job = load(&changed(from, to)).unwrap();
        let error = job.plan(vec![None]).err().expect("it cannot be planned");
        let place = (error.place().line, error.place().key.as_str());
        assert_eq!(place, (Some(line), key), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let to = "\"blackhole\"\nparallelism = 3\nexchange = \"forward\"";
    refused(
        "\"blackhole\"",
        to,
        20,
        "sinks.out",
        "has 3, but the stream between",
    );
    let to = "edge_bytes_max = \"3GiB\"\nkey = [\"key\"]";
    refused(
        "key = [\"key\"]",
        to,
        11,
        "operators.per_key",
        "even -> per_key",
    );
}

#[test]
fn files_that_are_missing_are_refused() {
    let parquet = "connector = \"parquet\"\npath = \"data/none.parquet\"";
    let from = "connector = \"generator\"\nrows = 100";
    refused(
        from,
        parquet,
        6,
        "sources.numbers.path",
        &["no file matches", "data/none.parquet"],
    );
    let sink = "connector = \"parquet\"\npath = \"nowhere/out.parquet\"";
    refused(
        "connector = \"blackhole\"",
        sink,
        22,
        "sinks.out.path",
        &["nowhere"],
    );
    refused(
        "parallelism = 2",
        "parallelism = 2\nspill_dir = \"nowhere\"",
        4,
        "job.spill_dir",
        &["no folder", "nowhere", "create it first"],
    );
    let missing = LoadedJob::load(Path::new("nowhere.toml"), &Overrides::default()).unwrap_err();
    assert!(
        missing.to_string().starts_with("nowhere.toml: "),
        "{missing}"
    );
}

#[test]
fn a_source_without_its_event_time_is_refused() {
    let from = "connector = \"generator\"\nrows = 100";
    let parquet = "connector = \"parquet\"\npath = \"data/flights.parquet\"\nevent_time = \"when\"";
    refused(
        from,
        parquet,
        7,
        "sources.numbers.event_time",
        &["no column `when`"],
    );
    let parquet = "connector = \"parquet\"\npath = \"data/flights.parquet\"\nevent_time = \"dest\"";
    refused(
        from,
        parquet,
        7,
        "sources.numbers.event_time",
        &["of type Utf8"],
    );
}

#[test]
fn what_needs_event_times_is_refused_where_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rows.json"),
        "{\"id\": 1, \"key\": 2, \"value\": 3}\n",
    )
    .unwrap();
    let from = "connector = \"generator\"\nrows = 100";
    let source = "connector = \"ndjson\"\npath = \"rows.json\"";
    let refused = |text: &str, key: &str, says: &str| {
        let error = load_at(text, Language::Toml, folder.path()).unwrap_err();
        assert_eq!(error.place().key, key, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    let key = "operators.per_key.input";
    refused(
        &changed(from, source),
        key,
        "no event time: say in `event_time`",
    );
    let watermark = format!("{source}\nwatermark = {{ strategy = \"monotonic\" }}");
    refused(
        &changed(from, &watermark),
        "sources.numbers.watermark",
        "no column `event_time`",
    );
    let with = changed(from, &format!("{source}\nevent_time = \"id\""));
    let with = with.replace("id % 2 = 0", "key > 0");
    load_at(&with, Language::Toml, folder.path()).unwrap();
}

#[test]
fn a_watermark_strategy_has_what_it_needs_and_nothing_else() {
    let watermark = |inner: &str| {
        format!(
            "connector = \"parquet\"\npath = \"data/flights.parquet\"\nwatermark = {{ {inner} }}"
        )
    };
    let from = "connector = \"generator\"\nrows = 100";
    let key = "sources.numbers.watermark";
    let bounded = watermark("strategy = \"bounded\"");
    refused(
        from,
        &bounded,
        7,
        &format!("{key}.strategy"),
        &["needs `out_of_orderness`"],
    );
    let monotonic = watermark("strategy = \"monotonic\", out_of_orderness = \"1s\"");
    refused(
        from,
        &monotonic,
        7,
        &format!("{key}.out_of_orderness"),
        &["never go back"],
    );
    let unknown = watermark("strategy = \"hopeful\"");
    refused(
        from,
        &unknown,
        7,
        &format!("{key}.strategy"),
        &["hopeful", "monotonic"],
    );
    let to = "rows = 100\nwatermark = { strategy = \"monotonic\" }";
    refused("rows = 100", to, 7, key, &["its own watermarks"]);
}

#[test]
fn what_no_subtask_runs_has_no_parallelism() {
    let to = "[operators.spread]\ntype = \"rebalance\"\ninput = \"numbers\"\nparallelism = 2\n\
              [operators.even]";
    let key = "operators.spread.parallelism";
    refused(
        "[operators.even]",
        to,
        10,
        key,
        &["give this key to what takes its rows"],
    );
}
