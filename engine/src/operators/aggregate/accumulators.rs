//! The state of all aggregates of an operator: for each a value a slot.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};

use super::encoding::as_type;
use super::spec::{AggregateKind, AggregateSpec};
use super::store::Store;
use super::values::{Selection, ValueKind, Values};
use crate::error::OperatorError;
use crate::operators::SpecError;

/// The aggregates of one operator.
///
/// What a slot stands for is the operator's business: a key, or a key in a pane.
pub(crate) struct Accumulators {
    aggregates: Vec<Aggregate>,
}

struct Aggregate {
    spec: AggregateSpec,
    /// None for a count of rows, which reads no column.
    argument: Option<Argument>,
    output: FieldRef,
    store: Store,
}

#[derive(Clone, Copy)]
struct Argument {
    column: usize,
    /// None where only nulls matter.
    kind: Option<ValueKind>,
}

impl Accumulators {
    /// State for `specs` over batches of `schema`, without slots.
    ///
    /// # Errors
    /// When a column does not exist or has a type that the aggregate cannot take.
    pub(crate) fn new(schema: &SchemaRef, specs: &[AggregateSpec]) -> Result<Self, SpecError> {
        let aggregates = specs
            .iter()
            .map(|spec| Aggregate::new(schema, spec))
            .collect::<Result<_, _>>()?;
        Ok(Self { aggregates })
    }

    /// The same aggregates, without slots.
    pub(crate) fn empty_like(&self) -> Self {
        let aggregates = self
            .aggregates
            .iter()
            .map(|aggregate| Aggregate {
                spec: aggregate.spec.clone(),
                argument: aggregate.argument,
                output: aggregate.output.clone(),
                store: aggregate.store.empty_like(),
            })
            .collect();
        Self { aggregates }
    }

    /// The output fields, one an aggregate.
    pub(crate) fn fields(&self) -> impl Iterator<Item = FieldRef> {
        self.aggregates
            .iter()
            .map(|aggregate| aggregate.output.clone())
    }

    /// Makes `slots` slots; new ones are empty.
    pub(crate) fn resize(&mut self, slots: usize) {
        for aggregate in &mut self.aggregates {
            aggregate.store.resize(slots);
        }
    }

    /// Empties `slots`.
    pub(crate) fn clear(&mut self, slots: &[u32]) {
        for aggregate in &mut self.aggregates {
            aggregate.store.clear(slots);
        }
    }

    /// Takes in `batch`, row `i` into slot `slots[i]`.
    ///
    /// # Errors
    /// When a value does not fit the type it is aggregated in.
    pub(crate) fn update(
        &mut self,
        batch: &RecordBatch,
        slots: &[u32],
    ) -> Result<(), OperatorError> {
        debug_assert_eq!(batch.num_rows(), slots.len());
        for aggregate in &mut self.aggregates {
            aggregate.update(batch, slots)?;
        }
        Ok(())
    }

    /// The counts of all slots, where counting rows is all that is asked for: whoever finds the
    /// slot of a row may count it at once, instead of [`Accumulators::update`].
    pub(crate) fn counts_alone(&mut self) -> Option<&mut [i64]> {
        match &mut self.aggregates[..] {
            [Aggregate { spec, store, .. }]
                if spec.kind == AggregateKind::Count && spec.filter.is_none() =>
            {
                store.counts_mut()
            }
            _ => None,
        }
    }

    /// Takes in slot `from[i]` of `other` into slot `into[i]`, for each `i`.
    pub(crate) fn merge(&mut self, into: &[u32], other: &Self, from: &[u32]) {
        for (aggregate, other) in self.aggregates.iter_mut().zip(&other.aggregates) {
            aggregate.store.merge(into, &other.store, from);
        }
    }

    /// The results of `slots`, one column an aggregate.
    ///
    /// # Errors
    /// When a sum of integers does not fit 64 bits.
    pub(crate) fn finish(&self, slots: &[u32]) -> Result<Vec<ArrayRef>, OperatorError> {
        self.aggregates
            .iter()
            .map(|aggregate| aggregate.finish(slots))
            .collect()
    }
}

impl Aggregate {
    fn new(schema: &SchemaRef, spec: &AggregateSpec) -> Result<Self, SpecError> {
        let field = |column: usize| {
            schema.fields().get(column).ok_or(SpecError::NoColumn {
                what: format!("the aggregate `{}`", spec.name),
                column,
                columns: schema.fields().len(),
            })
        };
        let refused = |column: usize, data_type: &DataType| SpecError::ColumnType {
            what: format!("the aggregate `{}`", spec.name),
            column,
            data_type: data_type.clone(),
        };
        if let Some(filter) = spec.filter {
            let data_type = field(filter)?.data_type();
            if *data_type != DataType::Boolean {
                return Err(refused(filter, data_type));
            }
        }
        let (argument, input) = match (spec.kind, spec.column) {
            (AggregateKind::Count, _) => (None, None),
            (_, None) => {
                let name = spec.name.clone();
                return Err(SpecError::NoArgument { name });
            }
            (AggregateKind::CountColumn, Some(column)) => {
                field(column)?;
                (Some(Argument { column, kind: None }), None)
            }
            (_, Some(column)) => {
                let data_type = field(column)?.data_type();
                let kind = ValueKind::of(data_type).ok_or_else(|| refused(column, data_type))?;
                let kind = Some(kind);
                (Some(Argument { column, kind }), Some((column, data_type)))
            }
        };
        let kind = argument.and_then(|argument| argument.kind);
        let totals = matches!(spec.kind, AggregateKind::Sum | AggregateKind::Mean);
        let store = match (input, Store::new(spec.kind, kind)) {
            (Some((_, data_type)), Some(store)) if !totals || data_type.is_numeric() => store,
            (None, Some(store)) => store,
            (Some((column, data_type)), _) => return Err(refused(column, data_type)),
            (None, None) => unreachable!("a count needs no value"),
        };
        let (data_type, nullable) = match (spec.kind, input) {
            (AggregateKind::Min | AggregateKind::Max, Some((_, input))) => (input.clone(), true),
            (AggregateKind::Mean, _) => (DataType::Float64, true),
            (AggregateKind::Sum, _) => (kind.map_or(DataType::Int64, ValueKind::data_type), true),
            _ => (DataType::Int64, false),
        };
        Ok(Self {
            spec: spec.clone(),
            argument,
            output: Field::new(&spec.name, data_type, nullable).into(),
            store,
        })
    }

    fn update(&mut self, batch: &RecordBatch, slots: &[u32]) -> Result<(), OperatorError> {
        let (values, valid) = match self.argument {
            None => (None, None),
            Some(Argument { column, kind: None }) => (None, batch.column(column).logical_nulls()),
            Some(Argument {
                column,
                kind: Some(kind),
            }) => {
                let (values, valid) = Values::new(kind, batch.column(column))?;
                (Some(values), valid)
            }
        };
        let valid = valid.filter(|valid| valid.null_count() > 0);
        let mut rows = valid.map(|valid| valid.into_inner());
        if let Some(filter) = self.spec.filter {
            let wanted = batch.column(filter).as_boolean();
            let known = wanted.nulls().map(|nulls| nulls.inner());
            for rows_too in [Some(wanted.values()), known].into_iter().flatten() {
                rows = Some(match rows {
                    Some(rows) => &rows & rows_too,
                    None => rows_too.clone(),
                });
            }
        }
        self.store
            .update(&Selection { slots, rows }, values.as_ref());
        Ok(())
    }

    fn finish(&self, slots: &[u32]) -> Result<ArrayRef, OperatorError> {
        let unsigned = *self.output.data_type() == DataType::UInt64;
        let plain = self
            .store
            .finish(slots, self.spec.kind, unsigned, &self.spec.name)?;
        as_type(&plain, self.output.data_type())
    }
}
