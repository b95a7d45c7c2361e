//! Operators that aggregate by key: what they have in common in a job file.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::aggregates;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Stream;
use crate::job::file::wiring::Wiring;
use crate::operator::Operator;
use crate::operators::window::{
    CountAggregate, CountSpec, SessionAggregate, SessionSpec, WindowAggregate, WindowSpec,
};
use crate::operators::{AggregateSpec, SpecError};
use crate::partition::Parallelism;

/// What an operator that aggregates by key computes.
pub(super) trait Grouped: Clone + Send + Sync + 'static {
    /// Its side outputs. The first is of late rows.
    const SIDES: &[&str];

    fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError>;

    fn operator(
        &self,
        input: &SchemaRef,
    ) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, SpecError>;
}

/// Adds an operator that computes `texts` of `input` by the key that its rows go by. `spec` says
/// what that is for key columns and aggregates.
pub(super) fn add<S: Grouped>(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
    texts: &[String],
    input: Stream,
    spec: impl FnOnce(Vec<usize>, Vec<AggregateSpec>) -> S,
) -> Result<(), JobFileError> {
    let key_columns = input.key().map(<[usize]>::to_vec).unwrap_or_default();
    require_key(wiring, consumer, &key_columns)?;
    let arguments = aggregates::bind(wiring, consumer, texts, &input.schema)?;
    let (keys, specs) = (key_columns.len(), arguments.specs.len());
    let spec = spec(key_columns, arguments.specs.clone());
    let schema = spec.output_schema(arguments.schema());
    let schema = schema.map_err(|error| {
        let path = consumer.declared.path(&["aggregates"]);
        wiring.document.error(&path, error.to_string())
    })?;
    aggregates::require_distinct(wiring, consumer, &schema, keys, specs)?;
    let is_keyed = keys > 0;
    let input = arguments.computed(wiring, consumer, input, is_keyed);
    let taken_in = input.schema.clone();
    let node = wiring.operator(consumer, &input, S::SIDES, move |_| {
        Ok(spec.operator(&taken_in)?)
    });
    if !is_keyed {
        wiring.graph[node].parallelism = Some(Parallelism::ONE);
    }
    let name = consumer.declared.name;
    wiring.name(name, input.behind(node, Port::Main, schema));
    if let Some(side) = S::SIDES.first() {
        let name = format!("{name}.{side}");
        let mut late = input.behind(node, Port::Side(0), input.schema.clone());
        if wiring.is_taken(&name) {
            let back = arguments.back();
            let back = back.map_err(|error| wiring.refused(consumer, &["aggregates"], &error))?;
            if let Some(back) = back {
                late = aggregates::project(wiring, consumer, late, back, &name);
            }
        }
        wiring.name(name, late);
    }
    Ok(())
}

/// Refuses several subtasks of an operator that has one, and ways to spread rows over them.
pub(super) fn require_one_subtask(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(), JobFileError> {
    let common = &consumer.common;
    let several = common
        .parallelism
        .is_some_and(|said| said.0 != Parallelism::ONE);
    let said = [
        ("parallelism", several),
        ("key", common.key.is_some()),
        ("exchange", common.exchange.is_some()),
    ];
    let Some((key, _)) = said.into_iter().find(|(_, is_said)| *is_said) else {
        return Ok(());
    };
    let message = "it has one subtask, which takes all rows: leave this out; for the first rows \
                   of each key there is `top_n`";
    let path = consumer.declared.path(&[key]);
    Err(wiring.document.error(&path, message))
}

/// Refuses several subtasks without a key: each would have results of its own.
pub(super) fn require_key(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    key_columns: &[usize],
) -> Result<(), JobFileError> {
    let subtasks = consumer.common.parallelism.map(|subtasks| subtasks.0);
    if !key_columns.is_empty() || subtasks.is_none_or(|subtasks| subtasks == Parallelism::ONE) {
        return Ok(());
    }
    let message = "without a `key` there is one result for all rows, so 1 subtask computes it: \
                   name a key, or leave `parallelism` out";
    Err(wiring
        .document
        .error(&consumer.declared.path(&["parallelism"]), message))
}

/// Refuses a number that must be at least 1.
pub(super) fn require_positive(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    key: &str,
    number: Option<u64>,
) -> Result<(), JobFileError> {
    if number != Some(0) {
        return Ok(());
    }
    let path = consumer.declared.path(&[key]);
    Err(wiring.document.error(&path, "must be more than 0"))
}

impl Grouped for WindowSpec {
    const SIDES: &[&str] = &["late"];

    fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        self.output_schema(input)
    }

    fn operator(
        &self,
        input: &SchemaRef,
    ) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, SpecError> {
        Ok(Box::new(WindowAggregate::new(input.clone(), self.clone())?))
    }
}

impl Grouped for SessionSpec {
    const SIDES: &[&str] = &["late"];

    fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        self.output_schema(input)
    }

    fn operator(
        &self,
        input: &SchemaRef,
    ) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, SpecError> {
        let operator = SessionAggregate::new(input.clone(), self.clone())?;
        Ok(Box::new(operator))
    }
}

impl Grouped for CountSpec {
    const SIDES: &[&str] = &[];

    fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        self.output_schema(input)
    }

    fn operator(
        &self,
        input: &SchemaRef,
    ) -> Result<Box<dyn Operator<RecordBatch, RecordBatch>>, SpecError> {
        Ok(Box::new(CountAggregate::new(input.clone(), self.clone())?))
    }
}
