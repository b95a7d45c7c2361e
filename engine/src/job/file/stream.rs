//! What a name in a job file stands for while the graph is built: a stream.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::job::{Exchange, NodeId, Port};
use crate::output::ByKeyColumns;

/// Rows of one schema, from one output or from several.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) schema: SchemaRef,
    pub(super) outlets: Vec<Outlet>,
    /// Whether its rows can have an event time.
    pub(super) has_event_time: bool,
}

/// An output of a node, and how what it gives is spread over whoever takes it.
#[derive(Clone)]
pub(super) struct Outlet {
    pub(super) node: NodeId,
    pub(super) port: Port,
    pub(super) route: Route,
}

/// How rows are spread over the subtasks of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Auto,
    Forward,
    Rebalance,
    Broadcast,
    /// By these columns.
    Key(Vec<usize>),
}

impl Stream {
    /// What an output of a node gives.
    pub(super) fn of(node: NodeId, port: Port, schema: SchemaRef) -> Self {
        let route = Route::Auto;
        let outlets = vec![Outlet { node, port, route }];
        Self {
            schema,
            outlets,
            has_event_time: true,
        }
    }

    /// Rows of `schema` from an output of a node that takes this.
    pub(super) fn behind(&self, node: NodeId, port: Port, schema: SchemaRef) -> Self {
        Self {
            has_event_time: self.has_event_time,
            ..Self::of(node, port, schema)
        }
    }

    /// The same rows, spread in another way.
    pub(super) fn routed(mut self, route: &Route) -> Self {
        for outlet in &mut self.outlets {
            outlet.route = route.clone();
        }
        self
    }

    /// The columns that the rows are keyed by, if all of them are by the same.
    pub(super) fn key(&self) -> Option<&[usize]> {
        let mut outlets = self.outlets.iter();
        let first = &outlets.next()?.route;
        match first {
            Route::Key(columns) if outlets.all(|outlet| outlet.route == *first) => Some(columns),
            _ => None,
        }
    }

    /// The rows of this and `other`.
    ///
    /// # Errors
    /// A sentence, when they have other columns. A column may be null if it may in one of them.
    pub(super) fn union(mut self, other: Self) -> Result<Self, String> {
        let (mine, theirs) = (self.schema.fields(), other.schema.fields());
        let same = |(one, two): (&Arc<Field>, &Arc<Field>)| {
            one.name() == two.name() && one.data_type() == two.data_type()
        };
        if mine.len() != theirs.len() || !mine.iter().zip(theirs).all(same) {
            return Err(format!(
                "the columns differ: ({}) and ({}); bring them into one shape with `map`",
                columns(&self.schema),
                columns(&other.schema)
            ));
        }
        let fields = mine.iter().zip(theirs).map(|(one, two)| {
            let nullable = one.is_nullable() || two.is_nullable();
            one.as_ref().clone().with_nullable(nullable)
        });
        let fields: Vec<Field> = fields.collect();
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        self.outlets.extend(other.outlets);
        self.has_event_time |= other.has_event_time;
        Ok(self)
    }
}

impl Route {
    /// The exchange of the graph for batches of `schema`.
    ///
    /// # Panics
    /// When the key columns do not fit the schema: they are checked where they are named.
    pub(super) fn exchange(&self, schema: &SchemaRef) -> Exchange {
        match self {
            Self::Auto => Exchange::auto::<RecordBatch>(),
            Self::Forward => Exchange::forward::<RecordBatch>(),
            Self::Rebalance => Exchange::rebalance::<RecordBatch>(),
            Self::Broadcast => Exchange::broadcast::<RecordBatch>(),
            Self::Key(columns) => {
                let (schema, columns) = (schema.clone(), columns.clone());
                Exchange::key::<RecordBatch>(move || {
                    let keys = ByKeyColumns::bind(&schema, &columns);
                    // Invariant: each key column is bound to this schema where it is named.
                    Box::new(keys.expect("key columns are bound once before"))
                })
            }
        }
    }
}

/// The columns of `schema` with their types, for a message.
pub(super) fn columns(schema: &Schema) -> String {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| format!("{} {}", field.name(), field.data_type()));
    columns.collect::<Vec<_>>().join(", ")
}
