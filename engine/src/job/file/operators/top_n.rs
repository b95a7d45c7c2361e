//! `top_n`: the first rows of each key in an order.

use serde::Deserialize;

use super::columns::{self, FromInput};
use super::grouped::{require_key, require_positive};
use super::{own_keys, windows};
use crate::job::Port;
use crate::job::file::common::Names;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Stream;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::SpecError;
use crate::operators::columnar::{TopN, TopNSpec};
use crate::operators::window::WindowAssigner;
use crate::partition::Parallelism;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    rows: u32,
    order: Names,
    size: Option<Span>,
    slide: Option<Span>,
    offset: Option<Span>,
    suffix: Option<String>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let declared = &consumer.declared;
    require_positive(wiring, consumer, "rows", Some(keys.rows.into()))?;
    let windows = windows_of(wiring, consumer, &keys)?;
    let input = wiring.input(consumer)?;
    if windows.is_some() {
        wiring.require_event_time(consumer, "input", &input)?;
    }
    let key_columns = input.key().map(<[usize]>::to_vec).unwrap_or_default();
    require_key(wiring, consumer, &key_columns)?;
    let is_keyed = !key_columns.is_empty();
    let spec = TopNSpec {
        rows_max: keys.rows as usize,
        key_columns,
        order: order(wiring, consumer, &keys.order, &input)?,
        windows,
        late: windows.map(|_| SideTag::new(0)),
    };
    let refuse = |message: String| wiring.document.error(&declared.path(&["order"]), message);
    let schema = spec.output_schema(&input.schema);
    let schema = schema.map_err(|error| refuse(error.to_string()))?;
    let first = schema.fields().len() - 1 - input.schema.fields().len();
    let from_input = FromInput {
        columns: first..schema.fields().len() - 1,
        suffix: keys.suffix.as_deref().unwrap_or("_row"),
        suffix_key: "suffix",
    };
    let names = columns::distinct(wiring, consumer, &schema, &[from_input])?;
    let taken_in = input.schema.clone();
    let make = move || -> Result<TopN, SpecError> {
        Ok(TopN::new(taken_in.clone(), spec.clone())?.renamed(&names))
    };
    let example = make().map_err(|error| refuse(error.to_string()))?;
    let schema = example.output_schema().clone();
    let sides: &[&str] = if windows.is_some() { &["late"] } else { &[] };
    let node = wiring.operator(consumer, &input, sides, move |_| Ok(Box::new(make()?)));
    if !is_keyed {
        wiring.graph[node].parallelism = Some(Parallelism::ONE);
    }
    let name = declared.name;
    if windows.is_some() {
        let late = input.behind(node, Port::Side(0), input.schema.clone());
        wiring.name(format!("{name}.late"), late);
    }
    wiring.name(name, input.behind(node, Port::Main, schema));
    Ok(())
}

fn windows_of(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    keys: &Keys,
) -> Result<Option<WindowAssigner>, JobFileError> {
    if let Some(size) = keys.size {
        return windows::assigner(wiring, consumer, size, keys.slide, keys.offset).map(Some);
    }
    for (key, value) in [("slide", keys.slide), ("offset", keys.offset)] {
        if value.is_some() {
            let message = "goes with `size`: without it the first of all rows so far are given";
            let path = consumer.declared.path(&[key]);
            return Err(wiring.document.error(&path, message));
        }
    }
    Ok(None)
}

/// The columns to order by, and whether the greatest comes first.
pub(super) fn order(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    order: &Names,
    input: &Stream,
) -> Result<Vec<(usize, bool)>, JobFileError> {
    let mut columns = Vec::new();
    for (index, text) in order.as_slice().iter().enumerate() {
        let (name, descending) = column_and_direction(text);
        let mut path = consumer.declared.path(&["order"]);
        path.extend(order.key_of(index));
        columns.push((wiring.column(&path, name, &input.schema)?, descending));
    }
    if columns.is_empty() {
        let path = consumer.declared.path(&["order"]);
        let message = "the list is empty: name a column, such as \"price DESC\"";
        return Err(wiring.document.error(&path, message));
    }
    Ok(columns)
}

fn column_and_direction(text: &str) -> (&str, bool) {
    let text = text.trim();
    if let Some((name, word)) = text.rsplit_once(char::is_whitespace) {
        for (direction, descending) in [("ASC", false), ("DESC", true)] {
            if word.eq_ignore_ascii_case(direction) {
                return (name.trim_end(), descending);
            }
        }
    }
    (text, false)
}
