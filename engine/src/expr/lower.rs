//! From sqlparser's tree to ours: refuses every construct that isn't supported.

use sqlparser::ast as sql;
use sqlparser::ast::{BinaryOperator, Spanned, UnaryOperator};

use super::ast::{ArithmeticOp, CompareOp, IsTest, Literal, LogicOp, Node, NodeKind};
use super::error::{ExprError, ExprErrorKind, Position};
use super::functions::Function;
use super::parse::{NESTING_DEPTH_MAX, position, too_deep};
use super::sql_types;

/// Lowers the tree of one expression that starts at `at`.
pub(super) fn lower(expr: &sql::Expr, at: Position) -> Result<Node, ExprError> {
    Lower { depth: 0, at }.node(expr)
}

/// Where in the tree we are: how deep, and the last known place in the text.
#[derive(Clone, Copy)]
struct Lower {
    depth: usize,
    at: Position,
}

impl Lower {
    fn node(self, expr: &sql::Expr) -> Result<Node, ExprError> {
        if self.depth >= NESTING_DEPTH_MAX {
            return Err(too_deep(self.at));
        }
        let below = Lower {
            depth: self.depth + 1,
            at: self.at,
        };
        below.kind(expr)
    }

    fn boxed(self, expr: &sql::Expr) -> Result<Box<Node>, ExprError> {
        self.node(expr).map(Box::new)
    }

    fn nodes<'a>(
        self,
        exprs: impl IntoIterator<Item = &'a sql::Expr>,
    ) -> Result<Vec<Node>, ExprError> {
        exprs.into_iter().map(|expr| self.node(expr)).collect()
    }

    fn kind(self, expr: &sql::Expr) -> Result<Node, ExprError> {
        match expr {
            sql::Expr::Nested(inner) => self.node(inner),
            sql::Expr::Identifier(name) => {
                let at = position(name.span.start).unwrap_or(self.at);
                Ok(Node::new(at, NodeKind::Column(name.value.clone())))
            }
            sql::Expr::CompoundIdentifier(parts) => Err(self.compound(parts)),
            sql::Expr::Value(value) => self.literal(value),
            sql::Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            sql::Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right),
            sql::Expr::Case {
                case_token,
                operand,
                conditions,
                else_result,
                ..
            } => {
                let at = position(case_token.0.span.start).unwrap_or(self.at);
                self.case(at, operand.as_deref(), conditions, else_result.as_deref())
            }
            sql::Expr::Cast {
                kind,
                expr,
                data_type,
                format: None,
            } => self.cast(kind, expr, data_type),
            _ => self.predicate(expr),
        }
    }

    fn predicate(self, expr: &sql::Expr) -> Result<Node, ExprError> {
        match expr {
            sql::Expr::IsDistinctFrom(left, right) => {
                self.compare(CompareOp::Distinct, left, right)
            }
            sql::Expr::IsNotDistinctFrom(left, right) => {
                self.compare(CompareOp::NotDistinct, left, right)
            }
            sql::Expr::In {
                expr,
                target: sql::InTarget::List(list),
                negated,
                global: false,
            } => {
                let operand = self.boxed(expr)?;
                let list = self.nodes(list)?;
                let at = operand.at;
                Ok(Node::new(
                    at,
                    NodeKind::InList {
                        operand,
                        list,
                        negated: *negated,
                    },
                ))
            }
            sql::Expr::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, low, high, *negated),
            sql::Expr::IsNull(operand) | sql::Expr::IsUnknown(operand) => {
                self.is(operand, IsTest::Null, false)
            }
            sql::Expr::IsNotNull(operand) | sql::Expr::IsNotUnknown(operand) => {
                self.is(operand, IsTest::Null, true)
            }
            sql::Expr::IsTrue(operand) => self.is(operand, IsTest::True, false),
            sql::Expr::IsNotTrue(operand) => self.is(operand, IsTest::True, true),
            sql::Expr::IsFalse(operand) => self.is(operand, IsTest::False, false),
            sql::Expr::IsNotFalse(operand) => self.is(operand, IsTest::False, true),
            sql::Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_deref(), *negated, false),
            sql::Expr::ILike {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_deref(), *negated, true),
            _ => self.function_form(expr),
        }
    }

    /// What sqlparser has a form of its own for, and is a function to us.
    fn function_form(self, expr: &sql::Expr) -> Result<Node, ExprError> {
        match expr {
            sql::Expr::Function(call) => self.call(call),
            sql::Expr::Floor { expr, field } if no_field(field) => {
                self.function(Function::Floor, [expr.as_ref()])
            }
            sql::Expr::Ceil { expr, field } if no_field(field) => {
                self.function(Function::Ceil, [expr.as_ref()])
            }
            sql::Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let Some(from) = substring_from else {
                    return Err(self.unsupported(expr, "substring without a start"));
                };
                let arguments = [expr, from].into_iter().chain(substring_for);
                self.function(Function::Substr, arguments.map(AsRef::as_ref))
            }
            sql::Expr::Trim {
                trim_where,
                trim_what: None,
                expr,
                trim_characters: None,
            } => {
                let function = match trim_where {
                    None | Some(sql::TrimWhereField::Both) => Function::Trim,
                    Some(sql::TrimWhereField::Leading) => Function::TrimStart,
                    Some(sql::TrimWhereField::Trailing) => Function::TrimEnd,
                };
                self.function(function, [expr.as_ref()])
            }
            sql::Expr::Extract {
                field,
                expr: operand,
                ..
            } => match Function::named(&field.to_string()).filter(|found| found.is_date_part()) {
                Some(function) => self.function(function, [operand.as_ref()]),
                None => Err(self.unsupported(expr, &format!("extract({field} from …)"))),
            },
            other => Err(self.unsupported(other, construct_name(other))),
        }
    }

    fn compound(self, parts: &[sql::Ident]) -> ExprError {
        let at = parts
            .first()
            .and_then(|part| position(part.span.start))
            .unwrap_or(self.at);
        let dotted: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let dotted = dotted.join(".");
        let construct =
            format!("the qualified name `{dotted}` (quote a dot in a column: \"{dotted}\")");
        ExprError::unsupported(at, &construct)
    }

    fn literal(self, value: &sql::ValueWithSpan) -> Result<Node, ExprError> {
        let at = position(value.span.start).unwrap_or(self.at);
        let literal = match &value.value {
            sql::Value::Null => Literal::Null,
            sql::Value::Boolean(value) => Literal::Boolean(*value),
            sql::Value::SingleQuotedString(text) => Literal::Text(text.clone()),
            sql::Value::Number(digits, false) => number(at, digits)?,
            other => return Err(ExprError::unsupported(at, &format!("the literal {other}"))),
        };
        Ok(Node::new(at, NodeKind::Literal(literal)))
    }

    fn unary(self, op: UnaryOperator, operand: &sql::Expr) -> Result<Node, ExprError> {
        match op {
            UnaryOperator::Plus => self.node(operand),
            UnaryOperator::Not => {
                let operand = self.boxed(operand)?;
                Ok(Node::new(operand.at, NodeKind::Not(operand)))
            }
            UnaryOperator::Minus => {
                // The sign belongs to a literal: the smallest int64 has no positive twin.
                if let sql::Expr::Value(value) = operand
                    && let sql::Value::Number(digits, false) = &value.value
                {
                    let at = position(value.span.start).unwrap_or(self.at);
                    let literal = number(at, &format!("-{digits}"))?;
                    return Ok(Node::new(at, NodeKind::Literal(literal)));
                }
                let operand = self.boxed(operand)?;
                Ok(Node::new(operand.at, NodeKind::Negate(operand)))
            }
            other => Err(self.unsupported(operand, &format!("the operator `{other}`"))),
        }
    }

    fn binary(
        self,
        whole: &sql::Expr,
        left: &sql::Expr,
        op: &BinaryOperator,
        right: &sql::Expr,
    ) -> Result<Node, ExprError> {
        let arithmetic = match op {
            BinaryOperator::Plus => ArithmeticOp::Add,
            BinaryOperator::Minus => ArithmeticOp::Subtract,
            BinaryOperator::Multiply => ArithmeticOp::Multiply,
            BinaryOperator::Divide => ArithmeticOp::Divide,
            BinaryOperator::Modulo => ArithmeticOp::Remainder,
            BinaryOperator::Eq => return self.compare(CompareOp::Equal, left, right),
            BinaryOperator::NotEq => return self.compare(CompareOp::NotEqual, left, right),
            BinaryOperator::Lt => return self.compare(CompareOp::Less, left, right),
            BinaryOperator::LtEq => return self.compare(CompareOp::LessOrEqual, left, right),
            BinaryOperator::Gt => return self.compare(CompareOp::Greater, left, right),
            BinaryOperator::GtEq => return self.compare(CompareOp::GreaterOrEqual, left, right),
            BinaryOperator::And | BinaryOperator::Or => return self.logic(whole, op),
            BinaryOperator::StringConcat => {
                return self.function(Function::Join, [left, right]);
            }
            other => return Err(self.unsupported(left, &format!("the operator `{other}`"))),
        };
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        Ok(Node::new(
            left.at,
            NodeKind::Arithmetic {
                op: arithmetic,
                left,
                right,
            },
        ))
    }

    fn compare(
        self,
        op: CompareOp,
        left: &sql::Expr,
        right: &sql::Expr,
    ) -> Result<Node, ExprError> {
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        Ok(Node::new(left.at, NodeKind::Compare { op, left, right }))
    }

    /// A chain of one operator, from the last operand back to the first.
    fn logic(self, whole: &sql::Expr, chained: &BinaryOperator) -> Result<Node, ExprError> {
        let mut operands = Vec::new();
        let mut rest = whole;
        while let sql::Expr::BinaryOp { left, op, right } = rest
            && op == chained
        {
            operands.push(self.node(right)?);
            rest = left;
        }
        operands.push(self.node(rest)?);
        operands.reverse();
        let op = if *chained == BinaryOperator::And {
            LogicOp::And
        } else {
            LogicOp::Or
        };
        Ok(Node::new(operands[0].at, NodeKind::Logic { op, operands }))
    }

    fn is(self, operand: &sql::Expr, test: IsTest, negated: bool) -> Result<Node, ExprError> {
        let operand = self.boxed(operand)?;
        Ok(Node::new(
            operand.at,
            NodeKind::Is {
                operand,
                test,
                negated,
            },
        ))
    }

    fn between(
        self,
        operand: &sql::Expr,
        low: &sql::Expr,
        high: &sql::Expr,
        negated: bool,
    ) -> Result<Node, ExprError> {
        let operand = self.boxed(operand)?;
        let (low, high) = (self.boxed(low)?, self.boxed(high)?);
        Ok(Node::new(
            operand.at,
            NodeKind::Between {
                operand,
                low,
                high,
                negated,
            },
        ))
    }

    fn like(
        self,
        operand: &sql::Expr,
        pattern: &sql::Expr,
        escape: Option<&sql::Expr>,
        negated: bool,
        any_case: bool,
    ) -> Result<Node, ExprError> {
        let backslash = |escape: &sql::Expr| {
            matches!(escape, sql::Expr::Value(value)
            if matches!(&value.value, sql::Value::SingleQuotedString(text) if text == "\\"))
        };
        if let Some(escape) = escape.filter(|escape| !backslash(escape)) {
            return Err(self.unsupported(escape, "an escape character other than '\\'"));
        }
        let (operand, pattern) = (self.boxed(operand)?, self.boxed(pattern)?);
        Ok(Node::new(
            operand.at,
            NodeKind::Like {
                operand,
                pattern,
                negated,
                any_case,
            },
        ))
    }

    fn case(
        self,
        at: Position,
        operand: Option<&sql::Expr>,
        conditions: &[sql::CaseWhen],
        otherwise: Option<&sql::Expr>,
    ) -> Result<Node, ExprError> {
        let below = Lower { at, ..self };
        let operand = operand.map(|operand| below.boxed(operand)).transpose()?;
        let branches = conditions
            .iter()
            .map(|branch| Ok((below.node(&branch.condition)?, below.node(&branch.result)?)))
            .collect::<Result<_, ExprError>>()?;
        let otherwise = otherwise
            .map(|otherwise| below.boxed(otherwise))
            .transpose()?;
        Ok(Node::new(
            at,
            NodeKind::Case {
                operand,
                branches,
                otherwise,
            },
        ))
    }

    fn cast(
        self,
        kind: &sql::CastKind,
        operand: &sql::Expr,
        to: &sql::DataType,
    ) -> Result<Node, ExprError> {
        let operand = self.boxed(operand)?;
        let at = operand.at;
        let to = sql_types::arrow_type(to)
            .ok_or_else(|| ExprError::unsupported(at, &format!("a cast to {to}")))?;
        let lenient = matches!(kind, sql::CastKind::TryCast | sql::CastKind::SafeCast);
        Ok(Node::new(
            at,
            NodeKind::Cast {
                operand,
                to,
                lenient,
            },
        ))
    }

    fn call(self, call: &sql::Function) -> Result<Node, ExprError> {
        let at = match call.name.0.first() {
            Some(sql::ObjectNamePart::Identifier(name)) => position(name.span.start),
            _ => None,
        };
        let below = Lower {
            at: at.unwrap_or(self.at),
            ..self
        };
        let name = call.name.to_string();
        let Some(function) = Function::named(&name) else {
            return Err(unknown_function(below.at, &name));
        };
        refuse_clauses(below.at, call)?;
        if call.filter.is_some() {
            return Err(ExprError::unsupported(
                below.at,
                "FILTER on a scalar function",
            ));
        }
        let arguments = plain_arguments(below.at, call)?;
        let mut node = below.function(function, arguments)?;
        node.at = below.at;
        Ok(node)
    }

    fn function<'a>(
        self,
        function: Function,
        arguments: impl IntoIterator<Item = &'a sql::Expr>,
    ) -> Result<Node, ExprError> {
        let arguments = self.nodes(arguments)?;
        let at = arguments.first().map_or(self.at, |first| first.at);
        function.check_count(at, arguments.len())?;
        Ok(Node::new(
            at,
            NodeKind::Call {
                function,
                arguments,
            },
        ))
    }

    fn unsupported(self, expr: &sql::Expr, construct: &str) -> ExprError {
        let at = position(expr.span().start).unwrap_or(self.at);
        ExprError::unsupported(at, construct)
    }
}

/// The arguments of a call that has nothing but positional expressions.
pub(super) fn plain_arguments(
    at: Position,
    call: &sql::Function,
) -> Result<Vec<&sql::Expr>, ExprError> {
    let sql::FunctionArguments::List(list) = &call.args else {
        return Err(ExprError::unsupported(
            at,
            &format!("`{}` without arguments", call.name),
        ));
    };
    let plain = |argument| match argument {
        &sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(ref expr)) => Ok(expr),
        other => Err(ExprError::unsupported(
            at,
            &format!("the argument `{other}`"),
        )),
    };
    list.args.iter().map(plain).collect()
}

/// Refuses what SQL can hang on a call, other than FILTER.
pub(super) fn refuse_clauses(at: Position, call: &sql::Function) -> Result<(), ExprError> {
    let refuse = |construct: &str| Err(ExprError::unsupported(at, construct));
    if call.over.is_some() {
        return refuse("OVER (a window function)");
    }
    if call.null_treatment.is_some() {
        return refuse("IGNORE NULLS or RESPECT NULLS");
    }
    if !call.within_group.is_empty() {
        return refuse("WITHIN GROUP");
    }
    if !matches!(call.parameters, sql::FunctionArguments::None) || call.uses_odbc_syntax {
        return refuse("this form of a function call");
    }
    if let sql::FunctionArguments::List(list) = &call.args {
        if list.duplicate_treatment.is_some() {
            return refuse("DISTINCT or ALL in a function call");
        }
        if !list.clauses.is_empty() {
            return refuse("a clause inside the arguments of a function");
        }
    }
    Ok(())
}

fn unknown_function(at: Position, name: &str) -> ExprError {
    if super::aggregate::AggregateKind::named(name).is_some() {
        let construct = format!("the aggregate `{name}` in a scalar expression");
        return ExprError::unsupported(at, &construct);
    }
    ExprError::unsupported(at, &format!("the function `{name}`"))
}

fn number(at: Position, digits: &str) -> Result<Literal, ExprError> {
    let refuse = |why: &str| {
        let message = format!("the number {digits} {why}");
        Err(ExprError::new(ExprErrorKind::Syntax, at, message))
    };
    if digits.contains(['.', 'e', 'E']) {
        return match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Float(value)),
            _ => refuse("is not a float64; write a smaller one"),
        };
    }
    match digits.parse::<i128>() {
        Ok(value) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) => {
            Ok(Literal::Integer(value))
        }
        _ => refuse("is outside of int64 and uint64; write it with a decimal point"),
    }
}

fn no_field(field: &sql::CeilFloorKind) -> bool {
    matches!(
        field,
        sql::CeilFloorKind::DateTimeField(sql::DateTimeField::NoDateTime)
    )
}

fn construct_name(expr: &sql::Expr) -> &'static str {
    match expr {
        sql::Expr::Subquery(_) | sql::Expr::Exists { .. } => "a subquery",
        sql::Expr::In { .. } => "IN with anything but a list of values",
        sql::Expr::Interval(_) => "an interval (compute in milliseconds instead)",
        sql::Expr::TypedString(_) => "a typed literal (use CAST('…' AS …))",
        sql::Expr::Tuple(_) => "a tuple",
        sql::Expr::Array(_) | sql::Expr::CompoundFieldAccess { .. } => "an array or a subscript",
        sql::Expr::Struct { .. } | sql::Expr::Dictionary(_) | sql::Expr::Map(_) => {
            "a struct or a map"
        }
        sql::Expr::SimilarTo { .. } | sql::Expr::RLike { .. } => "a regular expression",
        sql::Expr::AtTimeZone { .. } => "AT TIME ZONE (event time is UTC)",
        sql::Expr::AnyOp { .. } | sql::Expr::AllOp { .. } => "ANY or ALL",
        sql::Expr::Like { .. } | sql::Expr::ILike { .. } => "LIKE ANY",
        sql::Expr::Floor { .. } | sql::Expr::Ceil { .. } => "floor or ceil with a second argument",
        sql::Expr::Trim { .. } => "trim of given characters",
        sql::Expr::Cast { .. } => "CAST with a format",
        sql::Expr::Convert { .. } => "CONVERT (use CAST)",
        sql::Expr::Position { .. } | sql::Expr::Overlay { .. } => "POSITION or OVERLAY",
        sql::Expr::Collate { .. } => "COLLATE",
        sql::Expr::Wildcard(_) | sql::Expr::QualifiedWildcard(..) => "`*` as a value",
        sql::Expr::Lambda(_) => "a lambda function",
        _ => "this construct",
    }
}
