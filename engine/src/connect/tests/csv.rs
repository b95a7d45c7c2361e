//! CSV as input and as output.

use std::fs;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, TimeUnit};

use super::*;

const SCHEMA: &str = "schema = [{ name = 'id', type = 'int64', nullable = false }, \
                      { name = 'name', type = 'utf8' }]\n";

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

fn texts(batch: &RecordBatch, column: usize) -> Vec<Option<String>> {
    let column = batch.column(column).as_string::<i32>();
    column.iter().map(|text| text.map(str::to_owned)).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn quoted_values_may_hold_delimiters_quotes_and_line_ends() {
    let dir = tempfile::tempdir().unwrap();
    let text = "\u{feff}id,name\r\n1,\"a, \"\"b\"\"\r\nc\"\r\n\r\n2,plain\n3,\"\"\n4,last";
    write(dir.path(), "a.csv", text);
    let connector = source("csv", &format!("path = 'a.csv'\n{SCHEMA}"), dir.path());
    let elements = run_all(&*connector, 1);
    let batch = batches(&elements)[0];
    assert_eq!(ints(batch, 1), [Some(1), Some(2), Some(3), Some(4)]);
    let mut expected = some(&["a, \"b\"\r\nc", "plain", "", "last"]);
    expected[2] = None;
    assert_eq!(texts(batch, 2), expected);
    let stats = connector.stats().read();
    assert_eq!((stats.rows, stats.bytes), (4, text.len() as u64));
}

#[test]
fn another_delimiter_quote_and_null_may_be_given() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.csv", "1\t'x\ty'\n2\tNA\n3\t\n4\tNAN\n");
    let options = format!(
        "path = 'a.csv'\n{SCHEMA}header = false\ndelimiter = \"\\t\"\nquote = \"'\"\n\
         null_values = ['NA', '-']"
    );
    let elements = run_all(&*source("csv", &options, dir.path()), 1);
    let mut expected = some(&["x\ty", "", "", "NAN"]);
    expected[1] = None;
    assert_eq!(texts(batches(&elements)[0], 2), expected);
}

#[test]
fn a_row_of_nothing_but_delimiters_is_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let lines = ["id|name", "1|a", "|", "", "2|b", "|\r", "  \r", "|"];
    for delimiter in ["\\t", " ", ",", "\\f"] {
        let mark = toml::from_str::<toml::Table>(&format!("m = \"{delimiter}\"")).unwrap();
        let mark = mark["m"].as_str().unwrap();
        let lines = lines.map(|line| match line {
            // White space that is not the delimiter is a blank line.
            "  \r" if mark == " " => "\r".to_owned(),
            line => line.replace('|', mark),
        });
        write(dir.path(), "a.csv", &lines.join("\n"));
        for form in [
            "",
            "quoted_line_ends = false\n",
            "quoted_line_ends = false\nsplit_bytes = 4\n",
        ] {
            for schema in [&SCHEMA.replace(", nullable = false", ""), ""] {
                let options =
                    format!("path = 'a.csv'\ndelimiter = \"{delimiter}\"\n{schema}{form}");
                let elements = run_all(&*source("csv", &options, dir.path()), 1);
                let ids: Vec<_> = batches(&elements).iter().flat_map(|b| ints(b, 1)).collect();
                let expected = [Some(1), None, Some(2), None, None];
                assert_eq!(ids, expected, "{delimiter} {options}");
            }
        }
    }
}

#[test]
fn a_header_that_is_left_open_or_too_long_is_an_error_and_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let options = "path = 'a.csv'\nschema = [{ name = 'id', type = 'int64' }]\non_error = 'skip'";
    let long = format!("id,{}\n1,2\n", "x".repeat(17 << 20));
    for (text, expected) in [
        ("id,\"name\n1,a\n2,b\n", "ends within quotes"),
        (&*long, "header is too long"),
    ] {
        write(dir.path(), "a.csv", text);
        let connector = source("csv", options, dir.path());
        let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("a.csv") && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn columns_are_found_by_the_header_of_each_file() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.csv", "id,more,name\n1,x,one\n");
    write(dir.path(), "b.csv", "name,id\ntwo,2\n");
    write(dir.path(), "c.csv", "");
    let options = format!("path = '*.csv'\n{SCHEMA}");
    let elements = run_all(&*source("csv", &options, dir.path()), 1);
    let names: Vec<_> = batches(&elements)
        .iter()
        .flat_map(|b| texts(b, 2))
        .collect();
    assert_eq!(names, some(&["one", "two"]));
    write(dir.path(), "d.csv", "id\n3\n");
    let connector = source("csv", &options, dir.path());
    let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("d.csv: the header has no column `name`"),
        "{error}"
    );
}

#[test]
fn a_bad_row_is_an_error_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    for (bad, reason) in [
        ("x,name", "'x'"),
        ("7", "expected 2 got 1"),
        ("7,a,b", "got"),
        (",name", "null"),
        ("7,\"open\n\n\n", "within quotes"),
    ] {
        for before in [0, 1, 9000] {
            let text = format!("id,name\n{}{bad}\n", "1,\"a\nb\"\n".repeat(before));
            write(dir.path(), "a.csv", &text);
            let connector = source("csv", &format!("path = 'a.csv'\n{SCHEMA}"), dir.path());
            let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
            let (error, line) = (error.to_string(), 2 + 2 * before);
            let place = format!("a.csv:{line}: ");
            assert!(error.contains(&place), "{bad}: {error}");
            assert!(error.contains(reason), "{bad}: {error}");
            assert!(
                !error.contains("line 1"),
                "the decoder's own count: {error}"
            );
        }
    }
}

#[test]
fn bad_rows_that_are_skipped_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id,name\n".to_owned();
    for id in 0..20_000 {
        text.push_str(&match id % 1000 {
            7 => "nonsense\n".to_owned(),
            8 => format!("{id},x,y\n"),
            9 => "text,x\n".to_owned(),
            _ => format!("{id},x\n"),
        });
    }
    write(dir.path(), "a.csv", &text);
    for schema in [SCHEMA, "infer_rows = 7\n"] {
        let options = format!("path = 'a.csv'\n{schema}on_error = 'skip'");
        let connector = source("csv", &options, dir.path());
        assert_eq!(rows(&run_all(&*connector, 1)), 20_000 - 60);
        assert_eq!(connector.stats().read().skipped_rows, 60);
    }
}

#[test]
fn rows_that_are_left_out_can_be_kept_in_a_file_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad");
    for file in ["a.csv", "b.csv"] {
        write(
            dir.path(),
            file,
            "id,name\n1,x\n\n7,\"a\nb\",c\n2,y\nzz,é\r\n",
        );
    }
    let options =
        format!("path = '*.csv'\n{SCHEMA}on_error = 'skip'\nbad_rows = 'bad'\nheader = true");
    for _ in 0..2 {
        let connector = source("csv", &options, dir.path());
        assert_eq!(rows(&run_all(&*connector, 2)), 4);
        let text = fs::read_to_string(&bad).unwrap();
        let kept: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(kept.len(), 4, "one run, all subtasks: {text}");
        let places: Vec<_> = kept
            .iter()
            .map(|row| row["line"].as_u64().unwrap())
            .collect();
        assert_eq!(places, [4, 7, 4, 7]);
        assert_eq!(kept[0]["row"], "7,\"a\nb\",c");
        assert_eq!(kept[3]["row"], "zz,é");
        assert!(kept[3]["file"].as_str().unwrap().ends_with("b.csv"));
        assert!(kept[3]["reason"].as_str().unwrap().contains("zz"));
    }
    write(dir.path(), "a.csv", "id,name\n1,x\n");
    write(dir.path(), "b.csv", "id,name\n1,x\n");
    run_all(&*source("csv", &options, dir.path()), 1);
    assert_eq!(
        fs::read_to_string(&bad).unwrap(),
        "",
        "of this run, not of one before"
    );
    let refused = format!("path = 'a.csv'\n{SCHEMA}bad_rows = 'bad'");
    let error = try_source("csv", &refused, dir.path()).err().unwrap();
    assert!(error.to_string().contains("`bad_rows`: needs"), "{error}");
}

#[test]
fn a_schema_is_inferred_from_the_first_rows() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "0.csv", "");
    write(
        dir.path(),
        "a.csv",
        "event_time,n,f,flag,day,nothing,word\n\
         2020-01-02 03:04:05,1,1.5,true,2020-01-02,,x\n\
         ,2,2,false,,,7\n3,late,,,,,\n",
    );
    let options = "path = '*.csv'\ninfer_rows = 2\non_error = 'skip'";
    let connector = source("csv", options, dir.path());
    let schema = connector.schema();
    let types: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| f.data_type().clone())
        .collect();
    use DataType::{Boolean, Date32, Float64, Int64, Utf8};
    assert_eq!(types, [Int64, Int64, Float64, Boolean, Date32, Utf8, Utf8]);
    let elements = run_all(&*connector, 1);
    let times: Vec<_> = batches(&elements).iter().flat_map(|b| ints(b, 0)).collect();
    assert_eq!(times, [Some(1_577_934_245_000), None]);
    assert_eq!(connector.stats().read().skipped_rows, 1);
    let unnamed = source("csv", "path = 'a.csv'\nheader = false", dir.path());
    assert_eq!(unnamed.schema().field(1).name(), "column_1");
}

#[test]
fn times_are_read_in_the_form_that_is_given() {
    let dir = tempfile::tempdir().unwrap();
    for (text, form) in [
        ("1577934245", "time_format = 'epoch_s'"),
        ("02.01.2020 03:04:05", "time_format = '%d.%m.%Y %H:%M:%S'"),
        ("2020-01-02T05:04:05", "time_zone = '+02:00'"),
    ] {
        write(
            dir.path(),
            "a.csv",
            &format!("id,at\n1,{text}\n2,\n3,never\n"),
        );
        for schema in ["", "schema = [{ name = 'at', type = 'timestamp_us' }]\n"] {
            let options =
                format!("path = 'a.csv'\n{schema}event_time = 'at'\non_error = 'skip'\n{form}");
            let connector = source("csv", &options, dir.path());
            let elements = run_all(&*connector, 1);
            let batch = batches(&elements)[0];
            assert_eq!(ints(batch, 0), [Some(1_577_934_245_000), None], "{form}");
            assert_eq!(connector.stats().read().skipped_rows, 1);
        }
    }
    write(dir.path(), "a.csv", "day\n02/01/2020\n");
    let options = "path = 'a.csv'\ntime_format = '%d/%m/%Y'\n\
                   schema = [{ name = 'day', type = 'date32' }]";
    let elements = run_all(&*source("csv", options, dir.path()), 1);
    let days = batches(&elements)[0].column(1).clone();
    assert_eq!(days.data_type(), &DataType::Date32);
    let days = days.as_primitive::<arrow::datatypes::Date32Type>();
    assert_eq!(days.value(0), 18_263);
}

#[test]
fn ndjson_reads_times_in_other_forms_too() {
    let dir = tempfile::tempdir().unwrap();
    let text = "{\"at\":1577934245.5}\n{\"at\":\"1577934246\"}\n{\"at\":null}\n";
    write(dir.path(), "a.ndjson", text);
    for schema in ["", "schema = [{ name = 'at', type = 'timestamp_ms' }]\n"] {
        let options =
            format!("path = 'a.ndjson'\n{schema}event_time = 'at'\ntime_format = 'epoch_s'");
        let elements = run_all(&*source("ndjson", &options, dir.path()), 1);
        let expected = [Some(1_577_934_245_500), Some(1_577_934_246_000), None];
        assert_eq!(ints(batches(&elements)[0], 0), expected);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let time = DataType::Timestamp(TimeUnit::Millisecond, None);
    let columns: Vec<(&str, arrow::array::ArrayRef)> = vec![
        (
            "event_time",
            std::sync::Arc::new(arrow::array::Int64Array::from(vec![1, 2, 3])),
        ),
        (
            "word",
            std::sync::Arc::new(arrow::array::StringArray::from(vec![
                Some("a;\n\"b\""),
                None,
                Some("c"),
            ])),
        ),
        (
            "at",
            arrow::compute::cast(&arrow::array::Int64Array::from(vec![5, 6, 7]), &time).unwrap(),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = "path = 'out.csv'\ndelimiter = ';'\nnull_value = '-'";
    let to = sink("csv", options, dir.path());
    to.validate(&batch.schema(), 1).unwrap();
    let mut writer = to.build(&subtask(0, 1), &batch.schema());
    write_all(&mut *writer, [batch.slice(0, 2), batch.slice(2, 1)]).unwrap();
    let text = fs::read_to_string(dir.path().join("out.csv")).unwrap();
    assert!(text.starts_with("event_time;word;at\n"), "{text}");
    assert_eq!(to.stats().read().bytes, text.len() as u64);
    let options = "path = 'out.csv'\ndelimiter = ';'\nnull_values = ['-']\n\
                   schema = [{ name = 'event_time', type = 'int64' }, \
                   { name = 'word', type = 'utf8' }, { name = 'at', type = 'timestamp_ms' }]";
    let elements = run_all(&*source("csv", options, dir.path()), 1);
    assert_eq!(batches(&elements)[0].columns(), batch.columns());
}

#[test]
fn options_that_cannot_be_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.csv", "a\n1\n");
    for (option, name) in [
        ("delimiter = 'ab'", "delimiter"),
        ("delimiter = \"\\n\"", "delimiter"),
        ("quote = ','", "quote"),
        ("quote = 'é'", "quote"),
        ("time_format = '%'", "time_format"),
        ("time_zone = 'Mars'", "time_zone"),
        ("event_time = 'b'", "event_time"),
    ] {
        let error = try_source("csv", &format!("path = 'a.csv'\n{option}"), dir.path());
        let error = error.err().unwrap().to_string();
        assert!(error.starts_with(&format!("option `{name}`")), "{error}");
    }
    let nested = DataType::List(std::sync::Arc::new(arrow::datatypes::Field::new(
        "item",
        DataType::Int64,
        true,
    )));
    let schema =
        arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new("list", nested, true)]);
    let to = sink("csv", "path = 'out.csv'", dir.path());
    let error = to.validate(&std::sync::Arc::new(schema), 1).unwrap_err();
    assert!(error.to_string().contains("the column `list`"), "{error}");
}
