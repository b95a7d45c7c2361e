//! `aggregate`: aggregates by key over the whole stream.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde::Deserialize;

use super::grouped::{self, Grouped};
use super::own_keys;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operator::Operator;
use crate::operators::columnar::{Aggregate, EmitResults};
use crate::operators::{AggregateSpec, SpecError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    aggregates: Vec<String>,
    #[serde(default)]
    emit: Emit,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Emit {
    #[default]
    EachBatch,
    AtEnd,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let emit = match keys.emit {
        Emit::EachBatch => EmitResults::EachBatch,
        Emit::AtEnd => EmitResults::AtEnd,
    };
    let input = wiring.input(consumer)?;
    let spec = |key_columns, aggregates| WholeStream {
        key_columns,
        aggregates,
        emit,
    };
    grouped::add(wiring, consumer, &keys.aggregates, input, spec)
}

/// Aggregates over all rows.
#[derive(Clone)]
struct WholeStream {
    key_columns: Vec<usize>,
    aggregates: Vec<AggregateSpec>,
    emit: EmitResults,
}

impl WholeStream {
    fn aggregate(&self, input: &SchemaRef) -> Result<Aggregate, SpecError> {
        Aggregate::new(
            input.clone(),
            &self.key_columns,
            &self.aggregates,
            self.emit,
        )
    }
}

impl Grouped for WholeStream {
    const SIDES: &[&str] = &[];

    fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        Ok(self.aggregate(input)?.output_schema().clone())
    }

    fn operator(
        &self,
        input: &SchemaRef,
    ) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, SpecError> {
        Ok(Box::new(self.aggregate(input)?))
    }
}
