//! `map`: chosen, renamed and computed columns.

use arrow::datatypes::{DataType, SchemaRef};
use serde::Deserialize;

use super::own_keys;
use crate::batch::EVENT_TIME_COLUMN;
use crate::expr::{BoundProjection, Projection};
use crate::job::Port;
use crate::job::file::common::Names;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::Project;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    select: Names,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let projection = projection(wiring, consumer, &keys.select, &input.schema)?;
    let schema = projection.schema().clone();
    let makes_event_time = projection.columns()[0].is_column() != Some(0);
    let node = wiring.operator(consumer, &input, 0, move |_| {
        let projection = projection.clone();
        let project = Box::new(move |batch: &_| Ok(projection.evaluate(batch)?));
        Ok(Box::new(Project::new(project)))
    });
    let mut stream = input.behind(node, Port::Main, schema);
    stream.has_event_time |= makes_event_time;
    wiring.name(consumer.declared.name, stream);
    Ok(())
}

/// The columns that `select` says, with the event time as the first of them.
fn projection(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    select: &Names,
    input: &SchemaRef,
) -> Result<BoundProjection, JobFileError> {
    for (index, text) in select.as_slice().iter().enumerate() {
        let keys = select.key_of(index);
        let keys: Vec<&str> = ["select"]
            .into_iter()
            .chain(keys.iter().map(String::as_str))
            .collect();
        Projection::parse(text)
            .and_then(|item| item.bind(input))
            .map_err(|error| wiring.refused(consumer, &keys, &error))?;
    }
    let text = select.as_slice().join(", ");
    let bind = |text: &str| {
        Projection::parse(text)
            .and_then(|projection| projection.bind(input))
            .map_err(|error| wiring.refused(consumer, &["select"], &error))
    };
    let refuse = |message: String| {
        Err(wiring
            .document
            .error(&consumer.declared.path(&["select"]), message))
    };
    if text.trim().is_empty() {
        return refuse("the list is empty: select a column".to_owned());
    }
    let bound = bind(&text)?;
    match bound.schema().index_of(EVENT_TIME_COLUMN) {
        Err(_) => bind(&format!("{EVENT_TIME_COLUMN}, {text}")),
        Ok(0) => match bound.schema().field(0).data_type() {
            DataType::Int64 => Ok(bound),
            other => refuse(format!(
                "`{EVENT_TIME_COLUMN}` is {other}, and must be Int64, milliseconds since 1970"
            )),
        },
        Ok(_) => refuse(format!(
            "`{EVENT_TIME_COLUMN}` must be the first column: put it first, or leave it out, \
             and it is there"
        )),
    }
}
