//! Aggregate expressions: how they are written and typed. What accumulates is elsewhere.

use arrow::datatypes::{DataType, Field, Schema};
use sqlparser::ast as sql;

use super::bind::bind;
use super::bound::Bound;
use super::coerce::{arithmetic_type, is_comparable};
use super::error::{ExprError, ExprErrorKind, Position};
use super::lower::{lower, plain_arguments, refuse_clauses};
use super::parse::{parse_items, position};
use super::{BoundExpr, Expr};

/// What an aggregate computes of its argument. All but Count skip nulls and are
/// null where nothing else was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// The number of rows, or of values that aren't null if there is an argument.
    Count,
    /// The sum; int64, uint64 or float64 as its argument.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The arithmetic mean, a float64 of a float64 argument.
    Mean,
}

impl AggregateKind {
    /// The aggregate of this SQL name, in any case; `avg` is `mean`.
    pub fn named(name: &str) -> Option<AggregateKind> {
        Some(match name.to_ascii_lowercase().as_str() {
            "count" => AggregateKind::Count,
            "sum" => AggregateKind::Sum,
            "min" => AggregateKind::Min,
            "max" => AggregateKind::Max,
            "mean" | "avg" => AggregateKind::Mean,
            _ => return None,
        })
    }

    /// Its SQL name.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::Mean => "mean",
        }
    }
}

/// A parsed aggregate such as `sum(price * 2) FILTER (WHERE price > 0) AS total`.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateExpr {
    kind: AggregateKind,
    argument: Option<Expr>,
    filter: Option<Expr>,
    name: String,
    at: Position,
}

impl AggregateExpr {
    /// Parses one aggregate. Without AS the output is named as the text is
    /// written, e.g. `sum(price)`.
    ///
    /// # Errors
    ///
    /// As [`Expr::parse`]; `Unsupported` for anything but one call of count,
    /// sum, min, max, mean or avg.
    pub fn parse(text: &str) -> Result<AggregateExpr, ExprError> {
        let mut all = AggregateExpr::parse_list(text)?;
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => {
                let message = "more than one aggregate; write one here";
                Err(ExprError::new(
                    ExprErrorKind::Syntax,
                    Position::START,
                    message,
                ))
            }
        }
    }

    /// Parses a list such as `count(*) AS n, max(price)`.
    ///
    /// # Errors
    ///
    /// As [`AggregateExpr::parse`], and `Name` where two outputs have one name.
    pub fn parse_list(text: &str) -> Result<Vec<AggregateExpr>, ExprError> {
        let mut all: Vec<AggregateExpr> = Vec::new();
        for item in parse_items(text)? {
            let one = parse_item(&item)?;
            if all.iter().any(|other| other.name == one.name) {
                let message = format!(
                    "two aggregates are named `{}`; rename one with AS",
                    one.name
                );
                return Err(ExprError::new(ExprErrorKind::Name, one.at, message));
            }
            all.push(one);
        }
        Ok(all)
    }

    /// The name of the output column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Resolves columns, casts the argument to what is accumulated, and finds
    /// the output column.
    ///
    /// # Errors
    ///
    /// As [`Expr::bind`].
    pub fn bind(&self, schema: &Schema) -> Result<BoundAggregate, ExprError> {
        let argument = match &self.argument {
            Some(argument) => Some(accumulated(self.kind, bind(&argument.node, schema)?)?),
            None => None,
        };
        let filter = self
            .filter
            .as_ref()
            .map(|filter| filter.bind(schema))
            .transpose()?;
        if let Some(filter) = &filter {
            filter.require_predicate()?;
        }
        let data_type = match (self.kind, &argument) {
            (AggregateKind::Count, _) | (_, None) => DataType::Int64,
            (_, Some(argument)) => argument.data_type.clone(),
        };
        let field = Field::new(&self.name, data_type, self.kind != AggregateKind::Count);
        let argument = argument.map(|bound| BoundExpr { bound });
        Ok(BoundAggregate {
            kind: self.kind,
            argument,
            filter,
            field,
        })
    }
}

/// An aggregate that is bound to a schema.
#[derive(Clone, Debug)]
pub struct BoundAggregate {
    kind: AggregateKind,
    argument: Option<BoundExpr>,
    filter: Option<BoundExpr>,
    field: Field,
}

impl BoundAggregate {
    /// What it computes.
    pub fn kind(&self) -> AggregateKind {
        self.kind
    }

    /// What it accumulates; none for `count(*)`. It has the type of the output,
    /// except under count, where any type is counted.
    pub fn argument(&self) -> Option<&BoundExpr> {
        self.argument.as_ref()
    }

    /// The condition under which a row counts, if there is one.
    pub fn filter(&self) -> Option<&BoundExpr> {
        self.filter.as_ref()
    }

    /// The output column. A count is never null; the others are where no value
    /// was accumulated.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

fn parse_item(item: &sql::SelectItem) -> Result<AggregateExpr, ExprError> {
    let (parsed, alias) = match item {
        sql::SelectItem::UnnamedExpr(parsed) => (parsed, None),
        sql::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
        other => {
            return Err(ExprError::unsupported(
                Position::START,
                &format!("`{other}`"),
            ));
        }
    };
    let sql::Expr::Function(call) = parsed else {
        // Lowering tells what is wrong with the expression, if anything is.
        let node = lower(parsed, Position::START)?;
        return Err(not_an_aggregate(node.at, &node.to_string()));
    };
    let at = match call.name.0.first() {
        Some(sql::ObjectNamePart::Identifier(name)) => position(name.span.start),
        _ => None,
    };
    let at = at.unwrap_or(Position::START);
    let name = call.name.to_string();
    let kind = AggregateKind::named(&name).ok_or_else(|| not_an_aggregate(at, &name))?;
    refuse_clauses(at, call)?;
    let argument = argument(at, kind, call)?;
    let to_expr = |parsed: &sql::Expr| {
        Ok::<_, ExprError>(Expr {
            node: lower(parsed, at)?,
        })
    };
    let filter = call.filter.as_deref().map(to_expr).transpose()?;
    let name = alias.unwrap_or_else(|| default_name(kind, argument.as_ref(), filter.as_ref()));
    Ok(AggregateExpr {
        kind,
        argument,
        filter,
        name,
        at,
    })
}

fn argument(
    at: Position,
    kind: AggregateKind,
    call: &sql::Function,
) -> Result<Option<Expr>, ExprError> {
    let star = sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Wildcard);
    if kind == AggregateKind::Count
        && matches!(&call.args, sql::FunctionArguments::List(list) if list.args == [star])
    {
        return Ok(None);
    }
    match plain_arguments(at, call)?.as_slice() {
        [one] => Ok(Some(Expr {
            node: lower(one, at)?,
        })),
        several => {
            let message = format!(
                "{} takes 1 argument(s) and got {}",
                kind.name(),
                several.len()
            );
            Err(ExprError::mistyped(at, message))
        }
    }
}

/// The argument in the type that its accumulator has.
fn accumulated(kind: AggregateKind, argument: Bound) -> Result<Bound, ExprError> {
    match kind {
        AggregateKind::Count => Ok(argument),
        AggregateKind::Sum => {
            let to = arithmetic_type(argument.at, &[argument.as_operand()])?;
            argument.coerce(&to)
        }
        AggregateKind::Mean => {
            arithmetic_type(argument.at, &[argument.as_operand()])?;
            argument.coerce(&DataType::Float64)
        }
        AggregateKind::Min | AggregateKind::Max if argument.is_untyped() => {
            argument.coerce(&DataType::Int64)
        }
        AggregateKind::Min | AggregateKind::Max => {
            if is_comparable(&argument.data_type) {
                return Ok(argument);
            }
            let found = &argument.data_type;
            Err(argument.mistyped(&format!(
                "is {found}, which has no order; use another column"
            )))
        }
    }
}

fn default_name(kind: AggregateKind, argument: Option<&Expr>, filter: Option<&Expr>) -> String {
    let argument = argument.map_or_else(|| "*".to_string(), Expr::to_string);
    let filter = filter.map_or_else(String::new, |filter| format!(" FILTER (WHERE {filter})"));
    format!("{}({argument}){filter}", kind.name())
}

fn not_an_aggregate(at: Position, found: &str) -> ExprError {
    let construct = format!("`{found}` as an aggregate (there are count, sum, min, max and mean)");
    ExprError::unsupported(at, &construct)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("i", DataType::Int32, false),
            Field::new("f", DataType::Float32, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("u", DataType::UInt64, true),
        ])
    }

    fn bound(text: &str) -> Result<BoundAggregate, ExprError> {
        AggregateExpr::parse(text)?.bind(&schema())
    }

    #[test]
    fn each_aggregate_has_the_output_type_of_the_page() {
        let cases = [
            ("count(*)", "count(*)", DataType::Int64, false),
            ("COUNT(s) AS n", "n", DataType::Int64, false),
            ("sum(i)", "sum(i)", DataType::Int64, true),
            ("sum(u)", "sum(u)", DataType::UInt64, true),
            ("sum(f)", "sum(f)", DataType::Float64, true),
            ("min(s)", "min(s)", DataType::Utf8, true),
            ("max(i)", "max(i)", DataType::Int32, true),
            ("avg(i + 1)", "mean(i + 1)", DataType::Float64, true),
        ];
        for (text, name, data_type, nullable) in cases {
            let field = Field::new(name, data_type, nullable);
            assert_eq!(bound(text).unwrap().field(), &field, "{text}");
        }
    }

    #[test]
    fn an_argument_has_the_type_that_is_accumulated() {
        let sum = bound("sum(i)").unwrap();
        assert_eq!(
            sum.argument().map(BoundExpr::data_type),
            Some(&DataType::Int64)
        );
        assert!(bound("count(*)").unwrap().argument().is_none());
        assert_eq!(
            bound("count(s)")
                .unwrap()
                .argument()
                .and_then(BoundExpr::is_column),
            Some(2)
        );
    }

    #[test]
    fn a_filter_is_bound_as_a_condition() {
        let aggregate = bound("sum(i) FILTER (WHERE s = 'x') AS t").unwrap();
        assert_eq!(
            aggregate.filter().map(BoundExpr::to_string).as_deref(),
            Some("s = 'x'")
        );
        assert_eq!(aggregate.field().name(), "t");
        let error = bound("sum(i) FILTER (WHERE i)").unwrap_err();
        assert_eq!(error.kind(), ExprErrorKind::Type);
    }

    #[test]
    fn what_is_no_supported_aggregate_is_refused() {
        for text in [
            "i + 1",
            "median(i)",
            "count(DISTINCT i)",
            "sum(*)",
            "sum(i) OVER ()",
            "sum(i, f)",
            "sum(s)",
            "sum(sum(i))",
            "count(*), count(*)",
            "*",
        ] {
            assert!(bound(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_keeps_its_order() {
        let all = AggregateExpr::parse_list("count(*) AS n, max(i)").unwrap();
        let names: Vec<_> = all.iter().map(AggregateExpr::name).collect();
        assert_eq!(names, ["n", "max(i)"]);
    }
}
