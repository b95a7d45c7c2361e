//! From the parsed form to the bound one: resolves columns and checks types.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, NullArray, StringArray, UInt64Array,
};
use arrow::datatypes::{DataType, Schema};

use super::ast::{ArithmeticOp, CompareOp, IsTest, Literal, LogicOp, Node, NodeKind};
use super::bound::{Bound, BoundKind};
use super::coerce::{LiteralKind, arithmetic_type, common_type, is_comparable, is_text};
use super::divisible;
use super::error::{ExprError, ExprErrorKind, Position};
use super::functions::Function;

/// Binds a parsed expression to the columns of a schema.
pub(super) fn bind(node: &Node, schema: &Schema) -> Result<Bound, ExprError> {
    let place = Place { at: node.at, node };
    match &node.kind {
        NodeKind::Column(name) => place.column(name, schema),
        NodeKind::Literal(literal) => Ok(place.literal(literal)),
        NodeKind::Negate(operand) => place.negate(bind(operand, schema)?),
        NodeKind::Arithmetic { op, left, right } => {
            place.arithmetic(*op, bind(left, schema)?, bind(right, schema)?)
        }
        NodeKind::Case {
            operand,
            branches,
            otherwise,
        } => {
            let operand = operand
                .as_ref()
                .map(|operand| bind(operand, schema))
                .transpose()?;
            let otherwise = otherwise
                .as_ref()
                .map(|node| bind(node, schema))
                .transpose()?;
            let whens = bind_all(branches.iter().map(|branch| &branch.0), schema)?;
            let thens = bind_all(branches.iter().map(|branch| &branch.1), schema)?;
            place.case(operand, whens, thens, otherwise)
        }
        NodeKind::Cast {
            operand,
            to,
            lenient,
        } => {
            let bound = bind(operand, schema)?.cast(to, *lenient)?;
            Ok(Bound {
                text: node.to_string(),
                ..bound
            })
        }
        NodeKind::Call {
            function,
            arguments,
        } => place.call(*function, bind_all(arguments, schema)?),
        _ => bind_condition(&place, node, schema),
    }
}

/// Binds an operation that gives booleans.
fn bind_condition(place: &Place<'_>, node: &Node, schema: &Schema) -> Result<Bound, ExprError> {
    match &node.kind {
        NodeKind::Not(operand) => {
            let operand = bind(operand, schema)?.require_boolean()?;
            Ok(place.boolean(&[&operand], BoundKind::Not(Box::new(operand.clone()))))
        }
        NodeKind::Compare { op, left, right } => {
            place.compare(*op, bind(left, schema)?, bind(right, schema)?)
        }
        NodeKind::Logic { op, operands } => place.logic(*op, bind_all(operands, schema)?),
        NodeKind::Is {
            operand,
            test,
            negated,
        } => place.is(bind(operand, schema)?, *test, *negated),
        NodeKind::InList {
            operand,
            list,
            negated,
        } => place.in_list(bind(operand, schema)?, bind_all(list, schema)?, *negated),
        NodeKind::Between {
            operand,
            low,
            high,
            negated,
        } => {
            let parts = vec![
                bind(operand, schema)?,
                bind(low, schema)?,
                bind(high, schema)?,
            ];
            place.between(parts, *negated)
        }
        NodeKind::Like {
            operand,
            pattern,
            negated,
            any_case,
        } => place.like(
            bind(operand, schema)?,
            bind(pattern, schema)?,
            *negated,
            *any_case,
        ),
        _ => unreachable!("every other operation is bound by the caller"),
    }
}

fn bind_all<'a>(
    nodes: impl IntoIterator<Item = &'a Node>,
    schema: &Schema,
) -> Result<Vec<Bound>, ExprError> {
    nodes.into_iter().map(|node| bind(node, schema)).collect()
}

/// Brings all operands to the type they meet in.
pub(super) fn unify(at: Position, operands: Vec<Bound>) -> Result<Vec<Bound>, ExprError> {
    let known: Vec<_> = operands.iter().map(Bound::as_operand).collect();
    let target = common_type(at, &known)?;
    operands
        .into_iter()
        .map(|operand| operand.coerce(&target))
        .collect()
}

/// As `unify`, for operands that are ordered; untyped nulls become int64.
pub(super) fn unify_ordered(at: Position, operands: Vec<Bound>) -> Result<Vec<Bound>, ExprError> {
    let operands = unify(at, operands)?;
    match operands.first() {
        Some(first) if first.is_untyped() => operands
            .into_iter()
            .map(|operand| operand.coerce(&DataType::Int64))
            .collect(),
        Some(first) if !is_comparable(&first.data_type) => Err(first.mistyped(&format!(
            "is {}, which can't be compared; cast it or use another column",
            first.data_type
        ))),
        _ => Ok(operands),
    }
}

/// The node that is being bound.
struct Place<'a> {
    at: Position,
    node: &'a Node,
}

impl Place<'_> {
    fn bound(&self, parts: &[&Bound], data_type: DataType, kind: BoundKind) -> Bound {
        Bound {
            kind,
            data_type,
            nullable: parts.iter().any(|part| part.nullable),
            fallible: parts.iter().any(|part| part.fallible),
            at: self.at,
            text: self.node.to_string(),
        }
    }

    fn boolean(&self, parts: &[&Bound], kind: BoundKind) -> Bound {
        self.bound(parts, DataType::Boolean, kind)
    }

    fn column(&self, name: &str, schema: &Schema) -> Result<Bound, ExprError> {
        let refuse = |message| Err(ExprError::new(ExprErrorKind::Name, self.at, message));
        let named = |(index, field): (usize, &Arc<arrow::datatypes::Field>)| {
            (field.name() == name).then_some(index)
        };
        let found: Vec<usize> = schema
            .fields()
            .iter()
            .enumerate()
            .filter_map(named)
            .collect();
        match found.as_slice() {
            [] => refuse(format!(
                "no column `{name}`; the columns are {} (names are case sensitive)",
                listed(schema)
            )),
            [index] => {
                let field = schema.field(*index);
                let kind = BoundKind::Column(*index);
                let bound = self.bound(&[], field.data_type().clone(), kind);
                Ok(Bound {
                    nullable: field.is_nullable(),
                    ..bound
                })
            }
            several => {
                let places: Vec<String> = several.iter().map(usize::to_string).collect();
                refuse(format!(
                    "the column `{name}` is ambiguous: it stands at positions {} (from 0); \
                     rename all but one before this step",
                    places.join(" and ")
                ))
            }
        }
    }

    fn literal(&self, literal: &Literal) -> Bound {
        let (value, kind): (ArrayRef, _) = match literal {
            Literal::Null => (Arc::new(NullArray::new(1)), LiteralKind::Other),
            Literal::Boolean(value) => (
                Arc::new(BooleanArray::from(vec![*value])),
                LiteralKind::Other,
            ),
            Literal::Integer(value) => (integer(*value), LiteralKind::Integer(*value)),
            Literal::Float(value) => (
                Arc::new(Float64Array::from(vec![*value])),
                LiteralKind::Float,
            ),
            Literal::Text(value) => (
                Arc::new(StringArray::from(vec![value.as_str()])),
                LiteralKind::Text,
            ),
        };
        let data_type = value.data_type().clone();
        let bound = self.bound(&[], data_type, BoundKind::Literal(value, kind));
        Bound {
            nullable: *literal == Literal::Null,
            ..bound
        }
    }

    fn negate(&self, operand: Bound) -> Result<Bound, ExprError> {
        let mut to = arithmetic_type(operand.at, &[operand.as_operand()])?;
        if to == DataType::UInt64 {
            to = DataType::Int64;
        }
        let operand = operand.coerce(&to)?;
        let fallible = operand.fallible || to == DataType::Int64;
        let bound = self.bound(
            &[&operand],
            to,
            BoundKind::Negate(Box::new(operand.clone())),
        );
        Ok(Bound { fallible, ..bound })
    }

    fn arithmetic(&self, op: ArithmeticOp, left: Bound, right: Bound) -> Result<Bound, ExprError> {
        let to = arithmetic_type(self.at, &[left.as_operand(), right.as_operand()])
            .map_err(|error| self.in_context(&error))?;
        let (left, right) = (left.coerce(&to)?, right.coerce(&to)?);
        let nullable = left.nullable || right.nullable;
        let fallible = left.fallible || right.fallible || to.is_integer();
        let kind = BoundKind::Arithmetic {
            op,
            left: Box::new(left),
            right: Box::new(right),
        };
        let bound = self.bound(&[], to, kind);
        Ok(Bound {
            nullable,
            fallible,
            ..bound
        })
    }

    fn compare(&self, op: CompareOp, left: Bound, right: Bound) -> Result<Bound, ExprError> {
        let mut sides = self.unify_ordered(vec![left, right])?.into_iter();
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            unreachable!("unify keeps the number of operands");
        };
        let known = matches!(op, CompareOp::Distinct | CompareOp::NotDistinct);
        let nullable = !known && (left.nullable || right.nullable);
        let fallible = left.fallible || right.fallible;
        let kind = match divisible::recognise(op, &left, &right) {
            Some((operand, by, negated)) => BoundKind::Divisible {
                operand: Box::new(operand),
                by,
                negated,
            },
            None => BoundKind::Compare {
                op,
                left: Box::new(left),
                right: Box::new(right),
            },
        };
        Ok(Bound {
            nullable,
            fallible,
            ..self.boolean(&[], kind)
        })
    }

    fn logic(&self, op: LogicOp, operands: Vec<Bound>) -> Result<Bound, ExprError> {
        let operands = operands
            .into_iter()
            .map(Bound::require_boolean)
            .collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&Bound> = operands.iter().collect();
        let bound = self.boolean(
            &parts,
            BoundKind::Logic {
                op,
                operands: vec![],
            },
        );
        Ok(Bound {
            kind: BoundKind::Logic { op, operands },
            ..bound
        })
    }

    fn is(&self, operand: Bound, test: IsTest, negated: bool) -> Result<Bound, ExprError> {
        let operand = if test == IsTest::Null {
            operand
        } else {
            operand.require_boolean()?
        };
        let fallible = operand.fallible;
        let kind = BoundKind::Is {
            operand: Box::new(operand),
            test,
            negated,
        };
        Ok(Bound {
            fallible,
            ..self.boolean(&[], kind)
        })
    }

    fn in_list(&self, operand: Bound, list: Vec<Bound>, negated: bool) -> Result<Bound, ExprError> {
        let mut all = vec![operand];
        all.extend(list);
        let mut all = self.unify_ordered(all)?;
        let parts: Vec<&Bound> = all.iter().collect();
        let bound = self.boolean(
            &parts,
            BoundKind::Logic {
                op: LogicOp::Or,
                operands: vec![],
            },
        );
        let list = all.split_off(1);
        let operand = Box::new(all.remove(0));
        Ok(Bound {
            kind: BoundKind::InList {
                operand,
                list,
                negated,
            },
            ..bound
        })
    }

    fn between(&self, parts: Vec<Bound>, negated: bool) -> Result<Bound, ExprError> {
        let parts = self.unify_ordered(parts)?;
        let [operand, low, high] = parts.as_slice() else {
            unreachable!("unify keeps the number of operands");
        };
        let boxed = |part: &Bound| Box::new(part.clone());
        let kind = BoundKind::Between {
            operand: boxed(operand),
            low: boxed(low),
            high: boxed(high),
            negated,
        };
        Ok(self.boolean(&[operand, low, high], kind))
    }

    fn like(
        &self,
        operand: Bound,
        pattern: Bound,
        negated: bool,
        any_case: bool,
    ) -> Result<Bound, ExprError> {
        for side in [&operand, &pattern] {
            if !is_text(&side.data_type) && !side.is_untyped() {
                let found = &side.data_type;
                return Err(side.mistyped(&format!("is {found}; LIKE needs text, so cast it")));
            }
        }
        let mut sides = unify(self.at, vec![operand, pattern])?;
        if sides.iter().all(Bound::is_untyped) {
            sides = sides
                .into_iter()
                .map(|side| side.coerce(&DataType::Utf8))
                .collect::<Result<_, _>>()?;
        }
        let [operand, pattern] = sides.as_slice() else {
            unreachable!("unify keeps the number of operands");
        };
        let kind = BoundKind::Like {
            operand: Box::new(operand.clone()),
            pattern: Box::new(pattern.clone()),
            negated,
            any_case,
        };
        Ok(self.boolean(&[operand, pattern], kind))
    }

    fn case(
        &self,
        operand: Option<Bound>,
        whens: Vec<Bound>,
        thens: Vec<Bound>,
        otherwise: Option<Bound>,
    ) -> Result<Bound, ExprError> {
        let count = whens.len();
        let (operand, whens) = match operand {
            None => {
                let whens = whens.into_iter().map(Bound::require_boolean);
                (None, whens.collect::<Result<Vec<_>, _>>()?)
            }
            Some(operand) => {
                let mut all = whens;
                all.push(operand);
                let mut all = self.unify_ordered(all)?;
                (all.pop(), all)
            }
        };
        let complete = otherwise.is_some();
        let results = unify(self.at, thens.into_iter().chain(otherwise).collect())
            .map_err(|error| self.in_context(&error))?;
        let nullable = !complete || results.iter().any(|result| result.nullable);
        let all = whens.iter().chain(&results).chain(&operand);
        let fallible = all.into_iter().any(|part| part.fallible);
        let data_type = results
            .first()
            .map_or(DataType::Null, |first| first.data_type.clone());
        let mut results = results.into_iter();
        let thens: Vec<Bound> = results.by_ref().take(count).collect();
        let kind = BoundKind::Case {
            operand: operand.map(Box::new),
            branches: whens.into_iter().zip(thens).collect(),
            otherwise: results.next().map(Box::new),
        };
        Ok(Bound {
            nullable,
            fallible,
            ..self.bound(&[], data_type, kind)
        })
    }

    fn call(&self, function: Function, arguments: Vec<Bound>) -> Result<Bound, ExprError> {
        let typed = function
            .bind(self.at, arguments)
            .map_err(|error| self.in_context(&error))?;
        let fallible = typed.fallible || typed.arguments.iter().any(|part| part.fallible);
        let kind = BoundKind::Call {
            function,
            arguments: typed.arguments,
        };
        let bound = self.bound(&[], typed.data_type, kind);
        Ok(Bound {
            nullable: typed.nullable,
            fallible,
            ..bound
        })
    }

    fn unify_ordered(&self, operands: Vec<Bound>) -> Result<Vec<Bound>, ExprError> {
        unify_ordered(self.at, operands).map_err(|error| self.in_context(&error))
    }

    /// Names the operation whose operands don't fit.
    fn in_context(&self, error: &ExprError) -> ExprError {
        let message = format!("in `{}`: {}", self.node, error.message());
        ExprError::new(error.kind(), error.position(), message)
    }
}

fn integer(value: i128) -> ArrayRef {
    match i64::try_from(value) {
        Ok(value) => Arc::new(Int64Array::from(vec![value])),
        // The parser lets nothing through that is in neither range.
        Err(_) => Arc::new(UInt64Array::from(vec![
            u64::try_from(value).unwrap_or(u64::MAX),
        ])),
    }
}

fn listed(schema: &Schema) -> String {
    let names: Vec<&str> = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(", ")
    }
}
