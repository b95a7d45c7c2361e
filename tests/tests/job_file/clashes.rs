//! Two things that would have one name, or one file, are refused before either is lost.

use std::path::Path;

use ringway::job::file::{JobFileError, Language, LoadedJob, Overrides};

use crate::sample::{changed, load};

#[track_caller]
fn refused(job: Result<LoadedJob, JobFileError>, key: &str, says: &[&str]) {
    let error = job.expect_err("one of two would be lost");
    assert_eq!(error.place().key, key, "{error}");
    assert!(error.place().line.is_some(), "{error}");
    for part in says {
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

#[test]
fn results_have_no_two_columns_of_one_name() {
    let window = "operators.per_key";
    let counted = "\"count(*) AS n\"";
    for (from, to, key) in [
        ("key = [\"key\"]", "key = \"event_time\"", "key"),
        ("key = [\"key\"]", "key = [\"key\", \"key\"]", "key.1"),
        (counted, "\"count(*) AS key\"", "aggregates.0"),
        (counted, "\"count(*) AS window_start\"", "aggregates.0"),
        (counted, "\"min(value) AS event_time\"", "aggregates.0"),
    ] {
        let job = changed(from, to);
        let says = ["two columns of the results are named"];
        refused(load(&job), &format!("{window}.{key}"), &says);
        let whole = job.replace("\"window\"", "\"aggregate\"");
        let whole = whole.replace("size = \"1s\"\n", "");
        match to.contains("window_start") {
            true => drop(load(&whole).expect("without windows the name is free")),
            false => refused(load(&whole), &format!("{window}.{key}"), &says),
        }
    }
}

#[test]
fn a_key_of_before_that_clashes_is_refused_at_the_input() {
    let keyed = "[operators.keyed]\ntype = \"key_by\"\ninput = \"even\"\nkey = \"event_time\"\n\
                 [operators.per_key]";
    let job = changed("[operators.per_key]", keyed);
    let job = job.replace("input = \"even\"\nkey = [\"key\"]", "input = \"keyed\"");
    refused(load(&job), "operators.per_key.input", &["`event_time`"]);
}

#[test]
fn a_dictionary_is_no_key_until_it_is_text() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.csv"), "d\nx\n").unwrap();
    let job = r#"
        [sources.rows]
        connector = "csv"
        path = "in.csv"
        schema = [{ name = "d", type = "Dictionary(Int32, Utf8)" }]
        [operators.text]
        type = "map"
        input = "rows"
        select = "d"
        [sinks.out]
        connector = "blackhole"
        input = "text"
        key = "d"
    "#;
    let says = ["CAST(d AS TEXT) AS d"];
    refused(load_in(folder.path(), job), "sinks.out.key", &says);
    let cast = job.replace("select = \"d\"", "select = \"CAST(d AS TEXT) AS d\"");
    load_in(folder.path(), &cast).unwrap();
}

fn load_in(folder: &Path, text: &str) -> Result<LoadedJob, JobFileError> {
    LoadedJob::parse(text, Language::Toml, folder, &Overrides::default())
}

/// A job that reads `path` and whatever `source` says, with these sinks.
fn job(path: &str, source: &str, sinks: &[(&str, &str, u32)]) -> String {
    let mut job = format!(
        "[sources.rows]\nconnector = \"ndjson\"\npath = \"{path}\"\nschema = [{{ name = \"a\", \
         type = \"int64\" }}]\n{source}\n"
    );
    for (name, path, parallelism) in sinks {
        job.push_str(&format!(
            "[sinks.{name}]\nconnector = \"ndjson\"\ninput = \"rows\"\npath = \"{path}\"\n\
             parallelism = {parallelism}\n"
        ));
    }
    job
}

#[test]
fn no_file_is_written_twice_or_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in.ndjson"), "{\"a\": 1}\n").unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let refused = |source: &str, sinks: &[(&str, &str, u32)], key: &str, says: &[&str]| {
        let text = job("*.ndjson", source, sinks);
        refused(load_in(folder.path(), &text), key, says);
    };
    let (one, same) = (("one", "out.json", 1), ("two", "sub/../out.json", 1));
    let says = ["`sinks.one.path` in line 9 writes", "name another file"];
    refused("", &[one, same], "sinks.two.path", &says);
    let parts = [("one", "q.out", 2), ("two", "q-0.out", 1)];
    refused("", &parts, "sinks.two.path", &["`sinks.one.path`"]);
    let input = [("one", "in.ndjson", 1)];
    refused(
        "",
        &input,
        "sinks.one.path",
        &["`sources.rows.path` in line 3 reads"],
    );
    let bad = "on_error = \"skip\"\nbad_rows = \"out.json\"";
    refused(bad, &[one], "sinks.one.path", &["`sources.rows.bad_rows`"]);
    let bad = "on_error = \"skip\"\nbad_rows = \"in.ndjson\"";
    refused(
        bad,
        &[],
        "sources.rows.bad_rows",
        &["which this source reads"],
    );
    let watch = "watch_ms = 100";
    let out = [("one", "out.ndjson", 1)];
    refused(watch, &out, "sinks.one.path", &["`sources.rows.path`"]);
    let elsewhere = [("one", "sub/out.ndjson", 1)];
    let watched = job("*.ndjson", watch, &elsewhere);
    load_in(folder.path(), &watched).unwrap();
    let apart = [
        ("one", "q.out", 2),
        ("two", "q-0.out", 2),
        ("three", "q-2.out", 1),
    ];
    load_in(folder.path(), &job("in.ndjson", "", &apart)).unwrap();
}
