//! Newline-delimited JSON as input.

use std::fs;

use arrow::datatypes::DataType;

use super::*;

const SCHEMA: &str = "schema = [{ name = 'id', type = 'int64', nullable = false }, \
                      { name = 'at', type = 'timestamp_us' }]\n";

fn error_of(connector: &dyn SourceConnector) -> String {
    Stepped::open(connector, 0, 1)
        .run()
        .unwrap_err()
        .to_string()
}

#[test]
fn lines_of_every_kind_are_rows() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"id\":1,\"at\":\"1970-01-01T00:00:01Z\"}\r\n\r\n  \n{\"at\":2000000,\"id\":2}\n\
                {\"id\":3,\"unknown\":[1]}";
    fs::write(dir.path().join("a.ndjson"), text).unwrap();
    let options = format!("path = 'a.ndjson'\n{SCHEMA}event_time = 'at'");
    let connector = source("ndjson", &options, dir.path());
    let elements = run_all(&*connector, 1);
    let batch = batches(&elements)[0];
    assert_eq!(ints(batch, 0), [Some(1000), Some(2000), None]);
    assert_eq!(ints(batch, 1), [Some(1), Some(2), Some(3)]);
    let stats = connector.stats().read();
    assert_eq!((stats.rows, stats.bytes), (3, text.len() as u64));
}

#[test]
fn a_bad_row_is_an_error_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let good = "{\"id\":1}\n";
    for (bad, number) in [("{\"id\":}", 9_001), ("{\"id\":\"x\"}", 3), ("{}", 1)] {
        let text = format!("{}{bad}\n{good}", good.repeat(number - 1));
        fs::write(dir.path().join("a.ndjson"), text).unwrap();
        let options = format!("path = 'a.ndjson'\n{SCHEMA}");
        let error = error_of(&*source("ndjson", &options, dir.path()));
        let place = format!("a.ndjson:{number}: ");
        assert!(error.contains(&place), "{error}");
        assert!(!error.ends_with(&place), "it says why: {error}");
    }
}

#[test]
fn bad_rows_that_are_skipped_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for id in 0..20_000 {
        text.push_str(&match id % 1000 {
            7 => "nonsense\n".to_owned(),
            8 => format!("{{\"id\":{id}\n"),
            9 => "{\"id\":\"text\"}\n".to_owned(),
            _ => format!("{{\"id\":{id}}}\n"),
        });
    }
    fs::write(dir.path().join("a.ndjson"), text).unwrap();
    let options = format!("path = 'a.ndjson'\n{SCHEMA}on_error = 'skip'");
    let connector = source("ndjson", &options, dir.path());
    let elements = run_all(&*connector, 1);
    assert_eq!(rows(&elements), 20_000 - 60);
    let stats = connector.stats().read();
    assert_eq!((stats.rows, stats.skipped_rows), (20_000 - 60, 60));
}

#[test]
fn a_number_that_is_not_whole_is_a_bad_row_of_a_column_of_whole_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{}{{\"id\":3.7}}\n{{\"id\":1e3}}\n",
        "{\"id\":1}\n".repeat(1000)
    );
    fs::write(dir.path().join("a.ndjson"), text).unwrap();
    fs::write(
        dir.path().join("at.ndjson"),
        "{\"id\":1,\"at\":1700000000.9}\n{\"id\":2,\"at\":9e18}\n{\"id\":3,\"at\":5}\n",
    )
    .unwrap();
    for (options, line, good) in [
        (format!("path = 'a.ndjson'\n{SCHEMA}"), 1001, 1001),
        ("path = 'a.ndjson'".to_owned(), 1001, 1001),
        (
            format!("path = 'at.ndjson'\n{SCHEMA}event_time = 'at'"),
            1,
            1,
        ),
    ] {
        let error = error_of(&*source("ndjson", &options, dir.path()));
        assert!(error.contains(&format!("ndjson:{line}: ")), "{error}");
        assert!(error.contains("is no whole number"), "{error}");
        let options = format!("{options}\non_error = 'skip'");
        let connector = source("ndjson", &options, dir.path());
        assert_eq!(rows(&run_all(&*connector, 1)), good);
        assert!(connector.stats().read().skipped_rows > 0);
    }
}

#[test]
fn a_schema_is_inferred_in_the_same_order_every_time() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("a.ndjson"),
        "{\"zeta\":1,\"beta\":null,\"mixed\":1,\"deep\":{\"b\":true,\"a\":1.5}}\n\
         {\"zeta\":2,\"event_time\":5,\"mixed\":\"x\",\"list\":[1]}\n",
    )
    .unwrap();
    for _ in 0..5 {
        let connector = source("ndjson", "path = 'a.ndjson'", dir.path());
        let schema = connector.schema();
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(
            names,
            ["event_time", "beta", "deep", "list", "mixed", "zeta"]
        );
        assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
        assert_eq!(schema.field(4).data_type(), &DataType::Utf8);
        let elements = run_all(&*connector, 1);
        assert_eq!(ints(batches(&elements)[0], 0), [None, Some(5)]);
    }
}

#[test]
fn inference_treats_bad_rows_as_reading_does() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("a.ndjson"),
        "\n{\"id\":1}\n[2]\n{\"id\":3}\n",
    )
    .unwrap();
    let error = try_source("ndjson", "path = 'a.ndjson'", dir.path())
        .err()
        .unwrap();
    assert!(error.to_string().contains("a.ndjson:3: "), "{error}");
    let options = "path = 'a.ndjson'\non_error = 'skip'";
    let connector = source("ndjson", options, dir.path());
    assert_eq!(rows(&run_all(&*connector, 1)), 2);
    assert_eq!(connector.stats().read().skipped_rows, 1);
}

#[test]
fn files_are_spread_over_subtasks_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    for id in [3, 1, 0, 2] {
        let text = format!("{{\"id\":{id},\"event_time\":{id}}}\n");
        fs::write(dir.path().join(format!("part-{id}.ndjson")), text).unwrap();
    }
    let options = "path = ['part-[01].ndjson', 'part-*.ndjson']\n\
                   watermark = { splits = 'ordered' }";
    let connector = source("ndjson", options, dir.path());
    assert_eq!(connector.parallelism_max(), Some(4));
    for (index, expected) in [(0, [0, 2]), (1, [1, 3])] {
        let elements = Stepped::open(&*connector, index, 2).run().unwrap();
        let ids: Vec<_> = batches(&elements).iter().flat_map(|b| ints(b, 1)).collect();
        assert_eq!(ids, expected.map(Some));
        assert_watermarks_hold(&elements);
    }
}

#[test]
fn options_that_cannot_be_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.ndjson"), "\n\n").unwrap();
    let refused = |options: &str| {
        let error = try_source("ndjson", options, dir.path()).err().unwrap();
        error.to_string()
    };
    assert!(refused("path = 'a.ndjson'").contains("`schema`: there is no row"));
    let bad_type = "path = 'a.ndjson'\nschema = [{ name = 'a', type = 'int65' }]";
    assert!(refused(bad_type).contains("the column `a` has the type `int65`"));
    let unknown: toml::Table = toml::from_str("path = 'a'\npaths = 'b'").unwrap();
    let error = SourceOptions::read("ndjson", unknown).unwrap_err();
    assert!(
        error.to_string().contains("unknown field `paths`"),
        "{error}"
    );
}

#[test]
fn bad_rows_never_overwrite_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"id\":1}\nnonsense\n";
    for name in ["a.ndjson", "b.ndjson"] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("b.ndjson", dir.path().join("link")).unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let options = |bad_rows: &str| {
        format!("path = '*.ndjson'\n{SCHEMA}on_error = 'skip'\nbad_rows = '{bad_rows}'")
    };
    for bad_rows in ["b.ndjson", "link", "sub/../a.ndjson"] {
        for connector in ["ndjson", "csv"] {
            let refused = try_source(connector, &options(bad_rows), dir.path());
            let error = refused.err().unwrap().to_string();
            assert!(error.contains("`bad_rows`: "), "{error}");
            assert!(error.contains("which this source reads"), "{error}");
        }
    }
    // A link that comes after planning is not followed into an input either.
    let connector = source("ndjson", &options("late"), dir.path());
    std::os::unix::fs::symlink("b.ndjson", dir.path().join("late")).unwrap();
    let error = error_of(&*connector);
    assert!(error.contains("which this source reads"), "{error}");
    assert_eq!(
        fs::read_to_string(dir.path().join("b.ndjson")).unwrap(),
        text
    );
}
