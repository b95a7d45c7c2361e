//! Aggregates as a job file writes them, for the operators that compute them.

use std::collections::HashSet;

use arrow::datatypes::{DataType, SchemaRef};

use crate::error::OperatorError;
use crate::expr::{
    AggregateExpr, AggregateKind as Written, BoundAggregate, BoundExpr, BoundProjection, Expr,
    ExprError, Projection,
};
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::{Route, Stream};
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::Project;
use crate::operators::{AggregateKind, AggregateSpec};
use crate::partition::Parallelism;

/// Aggregates over columns, and the columns that have to be computed for them.
pub(super) struct Arguments {
    pub(super) specs: Vec<AggregateSpec>,
    input: SchemaRef,
    /// The columns of the input and behind them the computed ones, if there are any.
    computed: Option<BoundProjection>,
}

/// Binds the `aggregates` of a consumer to the columns of its input.
///
/// # Errors
/// When one cannot be parsed or bound, or two have the same name.
pub(super) fn bind(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    texts: &[String],
    input: &SchemaRef,
) -> Result<Arguments, JobFileError> {
    let refuse = |index: usize, message: String| {
        let path = consumer.declared.path(&["aggregates", &index.to_string()]);
        wiring.document.error(&path, message)
    };
    if texts.is_empty() {
        let message = "the list is empty: name an aggregate, such as \"count(*) AS n\"";
        let path = consumer.declared.path(&["aggregates"]);
        return Err(wiring.document.error(&path, message));
    }
    let mut columns = Columns {
        input,
        computed: Vec::new(),
    };
    let mut names: HashSet<String> = HashSet::new();
    let mut specs = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let bound = AggregateExpr::parse(text).and_then(|aggregate| aggregate.bind(input));
        let keys = ["aggregates", &index.to_string()];
        let bound = bound.map_err(|error| wiring.refused(consumer, &keys, &error))?;
        let name = bound.field().name();
        if !names.insert(name.clone()) {
            let message = format!("two aggregates are named `{name}`; rename one with AS");
            return Err(refuse(index, message));
        }
        specs.push(columns.spec(&bound));
    }
    let computed = columns.projection();
    let computed = computed.map_err(|error| wiring.refused(consumer, &["aggregates"], &error))?;
    Ok(Arguments {
        specs,
        input: input.clone(),
        computed,
    })
}

/// Refuses results of which two columns have the same name: no operator behind could tell
/// them apart. The columns of `output` end with the key columns and the aggregates.
pub(super) fn require_distinct(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    output: &SchemaRef,
    key_columns: usize,
    aggregates: usize,
) -> Result<(), JobFileError> {
    let first_aggregate = output.fields().len() - aggregates;
    let first_key = first_aggregate - key_columns;
    let mut names = HashSet::new();
    for (index, field) in output.fields().iter().enumerate() {
        let name = field.name();
        if names.insert(name) {
            continue;
        }
        let (keys, mend) = match index.checked_sub(first_aggregate) {
            Some(aggregate) => (
                vec!["aggregates".to_owned(), aggregate.to_string()],
                "rename this one with AS",
            ),
            None => match &consumer.common.key {
                Some(names) => {
                    let mut keys = vec!["key".to_owned()];
                    keys.extend(names.key_of(index - first_key));
                    (keys, "leave it out, or rename the column with `map` before")
                }
                None => (
                    vec!["input".to_owned()],
                    "its rows go by that key: key them by other columns, or rename it with `map`",
                ),
            },
        };
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let message = format!("two columns of the results are named `{name}`: {mend}");
        let path = consumer.declared.path(&keys);
        return Err(wiring.document.error(&path, message));
    }
    Ok(())
}

impl Arguments {
    /// The schema of the rows that are aggregated.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.computed
            .as_ref()
            .map_or(&self.input, BoundProjection::schema)
    }

    /// The columns of the input, out of rows that are aggregated; none if they are the same.
    pub(super) fn back(&self) -> Result<Option<BoundProjection>, ExprError> {
        if self.computed.is_none() {
            return Ok(None);
        }
        Projection::parse_named(&unchanged(&self.input))?
            .bind(self.schema())
            .map(Some)
    }

    /// The rows that are aggregated: `input`, behind an operator that computes what has to be
    /// computed. That operator runs where the aggregates do, so that rows are spread once.
    pub(super) fn computed(
        &self,
        wiring: &mut Wiring<'_>,
        consumer: &Consumer<'_>,
        input: Stream,
        is_keyed: bool,
    ) -> Stream {
        let Some(projection) = self.computed.clone() else {
            return input;
        };
        let name = format!("{}.arguments", consumer.declared.name);
        let rows = project(wiring, consumer, input, projection, &name);
        if !is_keyed {
            for outlet in &rows.outlets {
                wiring.graph[outlet.node].parallelism = Some(Parallelism::ONE);
            }
        }
        rows.routed(&Route::Forward)
    }
}

/// Rows of `input` with the columns of `projection`, by an operator `name` that goes with a
/// consumer.
pub(super) fn project(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
    input: Stream,
    projection: BoundProjection,
    name: &str,
) -> Stream {
    let schema = projection.schema().clone();
    let node = wiring.operator(consumer, &input, &[], move |_| {
        let projection = projection.clone();
        // Positions are those in a text that is made of the one in the job file: the message
        // quotes the expression.
        let project = Box::new(move |batch: &_| {
            let projected = projection.evaluate(batch);
            projected.map_err(|error| OperatorError::new(error.message()))
        });
        Ok(Box::new(Project::new(project)))
    });
    // It has no state, but the name that state would go by is its own all the same.
    let added = &mut wiring.graph[node];
    added.uid = added.uid.take().map(|uid| match name.rsplit_once('.') {
        Some((_, part)) => format!("{uid}.{part}"),
        None => uid,
    });
    name.clone_into(&mut added.name);
    input.behind(node, Port::Main, schema)
}

/// The columns that aggregates read.
struct Columns<'a> {
    input: &'a SchemaRef,
    /// Expressions that become columns behind those of the input.
    computed: Vec<String>,
}

impl Columns<'_> {
    fn spec(&mut self, bound: &BoundAggregate) -> AggregateSpec {
        let column = bound
            .argument()
            .map(|argument| self.argument(bound.kind(), argument));
        let kind = match (bound.kind(), column) {
            (Written::Count, None) => AggregateKind::Count,
            (Written::Count, Some(_)) => AggregateKind::CountColumn,
            (Written::Sum, _) => AggregateKind::Sum,
            (Written::Min, _) => AggregateKind::Min,
            (Written::Max, _) => AggregateKind::Max,
            (Written::Mean, _) => AggregateKind::Mean,
        };
        AggregateSpec {
            kind,
            column,
            name: bound.field().name().clone(),
            filter: bound.filter().map(|filter| self.position(filter, None)),
        }
    }

    /// Sums and means take integers of any width as they are, and add them up exactly: there
    /// a column is not cast first.
    fn argument(&mut self, kind: Written, argument: &BoundExpr) -> usize {
        let is_exact = matches!(kind, Written::Sum | Written::Mean);
        let plain = Expr::parse(&argument.to_string()).and_then(|expr| expr.bind(self.input));
        if let Ok(plain) = plain
            && plain.data_type().is_integer()
            && is_exact
        {
            return self.position(&plain, None);
        }
        self.position(argument, Some(argument.data_type()))
    }

    /// Where the values of `expr` stand: in a column of the input, or in one to be computed.
    fn position(&mut self, expr: &BoundExpr, cast_to: Option<&DataType>) -> usize {
        if let Some(column) = expr.is_column() {
            return column;
        }
        let text = match cast_to {
            Some(DataType::Float64) => format!("CAST({expr} AS DOUBLE)"),
            _ => expr.to_string(),
        };
        let known = self.computed.iter().position(|other| *other == text);
        let index = known.unwrap_or_else(|| {
            self.computed.push(text);
            self.computed.len() - 1
        });
        self.input.fields().len() + index
    }

    fn projection(&self) -> Result<Option<BoundProjection>, ExprError> {
        if self.computed.is_empty() {
            return Ok(None);
        }
        let mut columns = unchanged(self.input);
        let computed = self
            .computed
            .iter()
            .map(|text| (text.clone(), text.clone()));
        columns.extend(computed);
        Projection::parse_named(&columns)?
            .bind(self.input)
            .map(Some)
    }
}

/// Every column of a schema as it is, by its name.
fn unchanged(schema: &SchemaRef) -> Vec<(String, String)> {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), quoted(field.name())))
        .collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
