//! Scalar SQL expressions for job files.
//!
//! A text is parsed once ([`Expr::parse`]), bound to a schema when a job is
//! planned ([`Expr::bind`]: columns are resolved and types checked there), and
//! evaluated on record batches by Arrow's kernels ([`BoundExpr::evaluate`]).
//! `docs/EXPRESSIONS.md` is the reference of the language; a test evaluates
//! every example in it.
//!
//! Nothing a user writes and no value in the data makes it panic.

mod aggregate;
mod ast;
mod bind;
mod bound;
mod coerce;
mod compare;
mod conditional;
mod dates;
mod divisible;
#[cfg(test)]
mod docs_test;
mod error;
mod eval;
mod functions;
mod lower;
mod numbers;
mod parse;
mod projection;
#[cfg(test)]
mod property_test;
mod sql_types;
mod strings;
mod value;

use std::fmt;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, new_empty_array};
use arrow::datatypes::{DataType, Schema};

pub use aggregate::{AggregateExpr, AggregateKind, BoundAggregate};
pub use error::{ExprError, ExprErrorKind, Position};
pub use parse::{NESTING_DEPTH_MAX, TOKENS_MAX};
pub use projection::{BoundProjection, Projection};

use ast::{Node, NodeKind};
use bound::{Bound, BoundKind};
use value::Rows;

/// A parsed expression; its columns aren't resolved yet.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// use ringway::expr::Expr;
///
/// let price: ArrayRef = Arc::new(Int64Array::from(vec![3, 4]));
/// let batch = RecordBatch::try_from_iter([("price", price)])?;
/// let double = Expr::parse("price * 2")?.bind(&batch.schema())?;
/// assert_eq!(*double.evaluate(&batch)?, Int64Array::from(vec![6, 8]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    node: Node,
}

impl Expr {
    /// Parses one expression.
    ///
    /// # Errors
    ///
    /// `Syntax`, `Unsupported` and `Limit`: show it to whoever wrote the text.
    /// `Type` where a function has too few or too many arguments.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        let parsed = parse::parse_expression(text)?;
        Ok(Expr {
            node: lower::lower(&parsed, Position::START)?,
        })
    }

    /// Resolves the columns in `schema`, checks types and puts casts in.
    ///
    /// # Errors
    ///
    /// `Name` for a column that is unknown or ambiguous, `Type` for operands
    /// that don't fit: show it to whoever wrote the text.
    pub fn bind(&self, schema: &Schema) -> Result<BoundExpr, ExprError> {
        Ok(BoundExpr {
            bound: bind::bind(&self.node, schema)?,
        })
    }

    /// The names of the columns it reads, each once, in the order of the text.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        collect_columns(&self.node, &mut names);
        names
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl std::str::FromStr for Expr {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Expr, ExprError> {
        Expr::parse(text)
    }
}

/// An expression that is bound to a schema.
#[derive(Clone, Debug)]
pub struct BoundExpr {
    bound: Bound,
}

impl BoundExpr {
    /// The type of what it gives. The literal NULL alone has type Null.
    pub fn data_type(&self) -> &DataType {
        &self.bound.data_type
    }

    /// Whether it may give null.
    pub fn nullable(&self) -> bool {
        self.bound.nullable
    }

    /// The position of the column it is, if it is nothing but a column.
    pub fn is_column(&self) -> Option<usize> {
        match self.bound.kind {
            BoundKind::Column(index) => Some(index),
            _ => None,
        }
    }

    /// The positions of the columns it reads, ascending.
    pub fn columns(&self) -> Vec<usize> {
        let mut used = Vec::new();
        self.bound.mark_columns(&mut used);
        (0..used.len()).filter(|index| used[*index]).collect()
    }

    /// Gives one value a row of `batch`.
    ///
    /// # Errors
    ///
    /// `Evaluation` where a value can't be computed with: fail the task, since
    /// the same data fails again. `Schema` where the batch has other columns
    /// than the schema this is bound to: bind anew.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef, ExprError> {
        if batch.num_rows() == 0 && self.bound.fallible {
            // Without rows nothing fails, not even `1 / 0`.
            return Ok(new_empty_array(self.data_type()));
        }
        eval::evaluate_column(&self.bound, &Rows::of(batch))
    }

    /// Gives one boolean a row of `batch`, never null: null counts as false,
    /// as in WHERE.
    ///
    /// # Errors
    ///
    /// As for `evaluate`; and `Type` if the expression isn't boolean, which
    /// [`BoundExpr::require_predicate`] tells when the job is planned.
    pub fn evaluate_predicate(&self, batch: &RecordBatch) -> Result<BooleanArray, ExprError> {
        if *self.data_type() == DataType::Null {
            return Ok(BooleanArray::from(vec![false; batch.num_rows()]));
        }
        self.require_predicate()?;
        let values = self.evaluate(batch)?;
        Ok(conditional::is_true(values.as_boolean()))
    }

    /// Refuses an expression that can't serve as a condition.
    ///
    /// # Errors
    ///
    /// `Type` if it gives anything but booleans: show it to whoever wrote it.
    pub fn require_predicate(&self) -> Result<(), ExprError> {
        match self.data_type() {
            DataType::Boolean | DataType::Null => Ok(()),
            other => Err(self.bound.mistyped(&format!(
                "is {other} where a condition is needed; compare it with something"
            ))),
        }
    }
}

impl fmt::Display for BoundExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bound.text)
    }
}

fn collect_columns<'a>(node: &'a Node, names: &mut Vec<&'a str>) {
    if let NodeKind::Column(name) = &node.kind
        && !names.contains(&name.as_str())
    {
        names.push(name);
    }
    for child in node.children() {
        collect_columns(child, names);
    }
}

#[cfg(test)]
mod tests;
