//! `map`: chosen, renamed and computed columns.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use serde::Deserialize;

use super::own_keys;
use crate::batch::EVENT_TIME_COLUMN;
use crate::error::OperatorError;
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
    let selection = Selection::new(wiring, consumer, &keys.select, &input.schema)?;
    let schema = selection.schema.clone();
    let makes_event_time = selection.items[0].projection.columns()[0].is_column() != Some(0);
    let node = wiring.operator(consumer, &input, &[], move |_| {
        let selection = selection.clone();
        let project = Box::new(move |batch: &_| selection.evaluate(batch));
        Ok(Box::new(Project::new(project)))
    });
    let mut stream = input.behind(node, Port::Main, schema);
    stream.has_event_time |= makes_event_time;
    wiring.name(consumer.declared.name, stream);
    Ok(())
}

/// The columns that `select` says, with the event time as the first of them.
#[derive(Clone)]
struct Selection {
    /// Each as the job file has it, so that errors point into a text that its author wrote.
    items: Vec<Item>,
    schema: SchemaRef,
}

#[derive(Clone)]
struct Item {
    text: String,
    projection: BoundProjection,
}

impl Selection {
    fn new(
        wiring: &Wiring<'_>,
        consumer: &Consumer<'_>,
        select: &Names,
        input: &SchemaRef,
    ) -> Result<Self, JobFileError> {
        let bind = |text: &str, keys: &[&str]| {
            Projection::parse(text)
                .and_then(|projection| projection.bind(input))
                .map_err(|error| wiring.refused(consumer, keys, &error))
        };
        let refuse = |message: String| {
            let path = consumer.declared.path(&["select"]);
            Err(wiring.document.error(&path, message))
        };
        let mut items = Vec::new();
        for (index, text) in select.as_slice().iter().enumerate() {
            let keys = select.key_of(index);
            let keys: Vec<&str> = ["select"]
                .into_iter()
                .chain(keys.iter().map(String::as_str))
                .collect();
            let (text, projection) = (text.clone(), bind(text, &keys)?);
            items.push(Item { text, projection });
        }
        let text = select.as_slice().join(", ");
        if text.trim().is_empty() {
            return refuse("the list is empty: select a column".to_owned());
        }
        // All of them together, for two may have the same name.
        let bound = bind(&text, &["select"])?;
        let schema = match bound.schema().index_of(EVENT_TIME_COLUMN) {
            Err(_) => {
                let (text, keys) = (EVENT_TIME_COLUMN.to_owned(), ["select"]);
                let projection = bind(&text, &keys)?;
                items.insert(0, Item { text, projection });
                let all = format!("{EVENT_TIME_COLUMN}, {}", select.as_slice().join(", "));
                bind(&all, &keys)?.schema().clone()
            }
            Ok(0) => match bound.schema().field(0).data_type() {
                DataType::Int64 => bound.schema().clone(),
                other => {
                    return refuse(format!(
                        "`{EVENT_TIME_COLUMN}` is {other}, and must be Int64, milliseconds since \
                         1970"
                    ));
                }
            },
            Ok(_) => {
                return refuse(format!(
                    "`{EVENT_TIME_COLUMN}` must be the first column: put it first, or leave it \
                     out, and it is there"
                ));
            }
        };
        Ok(Self { items, schema })
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch, OperatorError> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for Item { text, projection } in &self.items {
            let computed = projection.evaluate(batch).map_err(|error| {
                let at = error.position();
                OperatorError::new(format!("`{text}`, {at}: {}", error.message()))
            })?;
            columns.extend_from_slice(computed.columns());
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}
