//! Evaluates every example of docs/EXPRESSIONS.md, so that the page can't rot.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::util::display::array_value_to_string;

use super::functions::{FUNCTIONS, Function};
use super::{Expr, NESTING_DEPTH_MAX, TOKENS_MAX};

const PAGE: &str = include_str!("../../../docs/EXPRESSIONS.md");

/// The cells of every table row that begins with code, in the page's order.
fn rows() -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        let inner = inner.replace("\\|", "\u{1}");
        inner
            .split('|')
            .map(|cell| cell.trim().replace('\u{1}', "|"))
            .collect()
    };
    PAGE.lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .collect()
}

fn columns() -> Vec<(String, DataType)> {
    let mut columns = Vec::new();
    for row in rows().iter().filter(|row| row.len() == 2) {
        let data_type = match row[1].as_str() {
            "int64" => DataType::Int64,
            "int32" => DataType::Int32,
            "uint64" => DataType::UInt64,
            "float64" => DataType::Float64,
            "utf8" => DataType::Utf8,
            "bool" => DataType::Boolean,
            "timestamp" => DataType::Timestamp(TimeUnit::Millisecond, None),
            other => panic!("the page has a column of the unknown type {other}"),
        };
        for name in row[0].split(", ") {
            columns.push((name.trim_matches('`').to_string(), data_type.clone()));
        }
    }
    columns
}

fn batch(input: &str) -> RecordBatch {
    let given: Vec<(&str, &str)> = input
        .split(", ")
        .filter_map(|one| one.split_once(" = "))
        .collect();
    let columns = columns();
    for (name, _) in &given {
        assert!(
            columns.iter().any(|column| column.0 == *name),
            "no column {name} on the page"
        );
    }
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, data_type) in columns {
        let value = given.iter().find(|one| one.0 == name).map(|one| one.1);
        let text = StringArray::from(vec![value]);
        let array = cast(&text, &data_type).unwrap();
        let parsed = value.is_none() || array.is_valid(0);
        assert!(parsed, "{value:?} is no {data_type}");
        fields.push(Field::new(name, data_type, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn outcome(expression: &str, input: &str) -> String {
    let batch = batch(input);
    let bound = match Expr::parse(expression).and_then(|expr| expr.bind(&batch.schema())) {
        Ok(bound) => bound,
        Err(error) => return format!("refused: {error}"),
    };
    match bound.evaluate(&batch) {
        Ok(array) if array.data_type() == &DataType::Null || array.is_null(0) => "NULL".into(),
        Ok(array) => array_value_to_string(&array, 0).unwrap(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn every_example_of_the_page_gives_what_the_page_says() {
    let examples: Vec<_> = rows().into_iter().filter(|row| row.len() == 3).collect();
    assert!(
        examples.len() > 100,
        "only {} examples were found",
        examples.len()
    );
    for example in examples {
        let expression = example[0].trim_matches('`');
        let found = outcome(expression, &example[1]);
        let expected = example[2].as_str();
        let agrees = match expected.split_once(": ") {
            Some((stage @ ("refused" | "error"), part)) => {
                found.starts_with(stage) && found.contains(part)
            }
            _ => found == expected,
        };
        assert!(
            agrees,
            "`{expression}` with {}: the page says {expected}, found {found}",
            example[1]
        );
    }
}

#[test]
fn every_function_has_an_example_on_the_page() {
    let shown: BTreeSet<String> = rows()
        .iter()
        .filter(|row| row.len() == 3 && !row[2].starts_with("refused"))
        .map(|row| row[0].to_lowercase())
        .collect();
    for (function, name, ..) in FUNCTIONS {
        let call = if *function == Function::Join {
            (*name).to_string()
        } else {
            format!("{name}(")
        };
        assert!(
            shown.iter().any(|text| text.contains(&call)),
            "{name} has no example"
        );
    }
}

#[test]
fn the_page_states_the_limits_of_the_code() {
    assert!(PAGE.contains(&format!("at most {TOKENS_MAX} tokens")));
    assert!(PAGE.contains(&format!("at most {NESTING_DEPTH_MAX} levels")));
}
