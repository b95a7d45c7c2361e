//! A list of named expressions that makes new batches of old ones.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use sqlparser::ast as sql;

use super::error::{ExprError, ExprErrorKind, Position};
use super::parse::{parse_items, position};
use super::{BoundExpr, Expr, NodeKind, lower};

/// The columns of an output in terms of the columns of an input; not bound yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// `*`: every column of the input.
    All(Position),
    One {
        name: String,
        expr: Expr,
    },
}

impl Projection {
    /// Parses `expr AS name, …`. A bare column keeps its name and `*` stands
    /// for all columns of the input.
    ///
    /// # Errors
    ///
    /// As [`Expr::parse`], and `Name` where an expression has no name.
    pub fn parse(text: &str) -> Result<Projection, ExprError> {
        let mut items = Vec::new();
        for item in parse_items(text)? {
            items.push(parse_item(&item)?);
        }
        Ok(Projection { items })
    }

    /// Parses pairs of an output name and an expression; none gives batches
    /// without columns. Positions in errors count in the one expression.
    ///
    /// # Errors
    ///
    /// As [`Expr::parse`]; the message begins with the output name.
    pub fn parse_named<N: AsRef<str>, E: AsRef<str>>(
        columns: &[(N, E)],
    ) -> Result<Projection, ExprError> {
        let parse = |(name, text): &(N, E)| {
            let name = name.as_ref();
            let expr = Expr::parse(text.as_ref()).map_err(|error| for_column(name, &error))?;
            Ok(Item::One {
                name: name.to_string(),
                expr,
            })
        };
        Ok(Projection {
            items: columns
                .iter()
                .map(parse)
                .collect::<Result<_, ExprError>>()?,
        })
    }

    /// Binds every expression to the schema of the input and finds the schema
    /// of the output. The metadata of the schema is kept, and that of a field
    /// that passes through.
    ///
    /// # Errors
    ///
    /// As [`Expr::bind`], and `Name` where two outputs have one name.
    pub fn bind(&self, schema: &Schema) -> Result<BoundProjection, ExprError> {
        let mut columns: Vec<BoundExpr> = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        let mut add = |name: &str, expr: &Expr, at: Position| {
            let bound = expr
                .bind(schema)
                .map_err(|error| for_column(name, &error))?;
            if fields.iter().any(|field| field.name() == name) {
                let message = format!("two output columns are named `{name}`; rename one with AS");
                return Err(ExprError::new(ExprErrorKind::Name, at, message));
            }
            fields.push(output_field(name, &bound, schema));
            columns.push(bound);
            Ok(())
        };
        for item in &self.items {
            match item {
                Item::One { name, expr } => add(name, expr, expr.node.at)?,
                Item::All(at) => {
                    for field in schema.fields() {
                        let kind = NodeKind::Column(field.name().clone());
                        let expr = Expr {
                            node: super::Node::new(*at, kind),
                        };
                        add(field.name(), &expr, *at)?;
                    }
                }
            }
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(BoundProjection { columns, schema })
    }
}

/// A projection that is bound to the schema of its input.
#[derive(Clone, Debug)]
pub struct BoundProjection {
    columns: Vec<BoundExpr>,
    schema: SchemaRef,
}

impl BoundProjection {
    /// The schema of the output.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The expression of each output column, in order.
    pub fn columns(&self) -> &[BoundExpr] {
        &self.columns
    }

    /// Makes the output of one batch: the same rows, also where there are no
    /// columns to hold them. A bare column is shared, not copied.
    ///
    /// # Errors
    ///
    /// As [`BoundExpr::evaluate`].
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<RecordBatch, ExprError> {
        let arrays = self
            .columns
            .iter()
            .map(|column| column.evaluate(batch))
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options).map_err(
            |error| {
                // A column of the batch has nulls that its schema denies.
                let message = format!("the output doesn't fit its schema: {error}");
                ExprError::new(ExprErrorKind::Schema, Position::START, message)
            },
        )
    }
}

fn parse_item(item: &sql::SelectItem) -> Result<Item, ExprError> {
    match item {
        sql::SelectItem::UnnamedExpr(parsed) => {
            let expr = Expr {
                node: lower::lower(parsed, Position::START)?,
            };
            match &expr.node.kind {
                NodeKind::Column(name) => Ok(Item::One {
                    name: name.clone(),
                    expr,
                }),
                _ => {
                    let message = format!("`{expr}` has no name; write `{expr} AS name`");
                    Err(ExprError::new(ExprErrorKind::Name, expr.node.at, message))
                }
            }
        }
        sql::SelectItem::ExprWithAlias { expr, alias } => {
            let expr = Expr {
                node: lower::lower(expr, Position::START)?,
            };
            Ok(Item::One {
                name: alias.value.clone(),
                expr,
            })
        }
        sql::SelectItem::Wildcard(options) => {
            let at = position(options.wildcard_token.0.span.start).unwrap_or(Position::START);
            if *options != sql::WildcardAdditionalOptions::default() {
                return Err(ExprError::unsupported(at, "a clause behind `*`"));
            }
            Ok(Item::All(at))
        }
        other => Err(ExprError::unsupported(
            Position::START,
            &format!("`{other}`"),
        )),
    }
}

fn for_column(name: &str, error: &ExprError) -> ExprError {
    let message = format!("in the output column `{name}`: {}", error.message());
    ExprError::new(error.kind(), error.position(), message)
}

fn output_field(name: &str, bound: &BoundExpr, schema: &Schema) -> Field {
    match bound.is_column() {
        Some(index) => schema.field(index).clone().with_name(name),
        None => Field::new(name, bound.data_type().clone(), bound.nullable()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::DataType;

    use super::*;

    fn batch() -> RecordBatch {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let b: ArrayRef = Arc::new(Int64Array::from(vec![4, 5, 6]));
        RecordBatch::try_from_iter([("a", a), ("b", b)]).unwrap()
    }

    #[test]
    fn a_projection_computes_renames_and_passes_through() {
        let batch = batch();
        let bound = Projection::parse("b, a + b AS \"the sum\", a AS c").unwrap();
        let out = bound
            .bind(&batch.schema())
            .unwrap()
            .evaluate(&batch)
            .unwrap();
        let schema = out.schema();
        let names: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(names, ["b", "the sum", "c"]);
        assert_eq!(
            out.column(1).as_ref(),
            &Int64Array::from(vec![Some(5), None, Some(9)])
        );
        assert!(
            Arc::ptr_eq(out.column(2), batch.column(0)),
            "a bare column is shared"
        );
    }

    #[test]
    fn a_star_stands_for_every_column() {
        let batch = batch();
        let bound = Projection::parse("*, b * 2 AS d")
            .unwrap()
            .bind(&batch.schema())
            .unwrap();
        assert_eq!(bound.schema().fields().len(), 3);
        assert_eq!(bound.columns()[1].is_column(), Some(1));
    }

    #[test]
    fn rows_survive_a_projection_without_columns() {
        let none: [(&str, &str); 0] = [];
        let bound = Projection::parse_named(&none)
            .unwrap()
            .bind(&batch().schema())
            .unwrap();
        assert_eq!(bound.evaluate(&batch()).unwrap().num_rows(), 3);
    }

    #[test]
    fn schema_and_field_metadata_survive() {
        let meta: HashMap<_, _> = [("k".to_string(), "v".to_string())].into();
        let field = Field::new("a", DataType::Int64, true).with_metadata(meta.clone());
        let schema = Schema::new_with_metadata(vec![field], meta.clone());
        let bound = Projection::parse_named(&[("x", "a")])
            .unwrap()
            .bind(&schema)
            .unwrap();
        assert_eq!(bound.schema().metadata(), &meta);
        assert_eq!(bound.schema().field(0).metadata(), &meta);
        assert_eq!(bound.schema().field(0).name(), "x");
    }

    #[test]
    fn an_expression_without_a_name_and_a_name_twice_are_refused() {
        let error = Projection::parse("a, a + 1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, column 4: `a + 1` has no name; write `a + 1 AS name`"
        );
        let twice = Projection::parse("a, b AS a")
            .unwrap()
            .bind(&batch().schema())
            .unwrap_err();
        assert_eq!(twice.kind(), ExprErrorKind::Name);
        assert_eq!(twice.position(), Position { line: 1, column: 4 });
        let star = Projection::parse("*, b")
            .unwrap()
            .bind(&batch().schema())
            .unwrap_err();
        assert!(
            star.message().contains("two output columns are named `b`"),
            "{star}"
        );
    }

    #[test]
    fn an_error_names_the_output_column() {
        let error = Projection::parse_named(&[("x", "a +")]).unwrap_err();
        assert!(
            error.message().starts_with("in the output column `x`: "),
            "{error}"
        );
    }
}
