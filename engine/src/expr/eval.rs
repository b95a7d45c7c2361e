//! Evaluation of the bound form on the columns of a batch.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::compute::kernels::{boolean, comparison, numeric};
use arrow::error::ArrowError;

use super::ast::{ArithmeticOp, CompareOp, IsTest};
use super::bound::{Bound, BoundKind};
use super::compare::compare;
use super::conditional;
use super::error::{ExprError, ExprErrorKind};
use super::functions::{Function, cast_value};
use super::value::{Rows, Value};

/// Evaluates on all rows.
pub(super) fn evaluate(node: &Bound, rows: &Rows) -> Result<Value, ExprError> {
    match &node.kind {
        BoundKind::Column(index) => column(node, *index, rows),
        BoundKind::Literal(value, _) => Ok(Value::scalar(Arc::clone(value))),
        BoundKind::Negate(operand) => {
            let operand = evaluate(operand, rows)?;
            let array = numeric::neg(&operand.array).map_err(|error| failed(node, &error))?;
            Ok(Value { array, ..operand })
        }
        BoundKind::Arithmetic { op, left, right } => {
            let (left, right) = (evaluate(left, rows)?, evaluate(right, rows)?);
            arithmetic(*op, &left, &right).map_err(|error| failed(node, &error))
        }
        BoundKind::Case {
            operand,
            branches,
            otherwise,
        } => conditional::case(
            node,
            operand.as_deref(),
            branches,
            otherwise.as_deref(),
            rows,
        ),
        BoundKind::Cast { operand, lenient } => {
            let operand = evaluate(operand, rows)?;
            let array = cast_value(&operand.array, &node.data_type, *lenient)
                .map_err(|error| failed(node, &error))?;
            Ok(Value { array, ..operand })
        }
        BoundKind::Call {
            function: Function::Coalesce,
            arguments,
        } => conditional::coalesce(node, arguments, rows),
        BoundKind::Call {
            function,
            arguments,
        } => {
            let arguments = evaluate_all(arguments, rows)?;
            function
                .call(&arguments, rows.count)
                .map_err(|error| failed(node, &error))
        }
        _ => condition(node, rows),
    }
}

/// What a kernel refused, as an error that names the operation.
pub(super) fn failed(node: &Bound, error: &ArrowError) -> ExprError {
    let text = &node.text;
    let message = match error {
        ArrowError::DivideByZero => {
            format!("division by zero in `{text}`; guard it, e.g. divide by nullif(…, 0)")
        }
        ArrowError::ArithmeticOverflow(_) => {
            format!("integer overflow in `{text}`; cast an operand to DOUBLE or guard it")
        }
        ArrowError::CastError(what) | ArrowError::ParseError(what) => {
            format!("a value can't be cast in `{text}` ({what}); TRY_CAST gives null instead")
        }
        other => format!("`{text}` can't be evaluated: {other}"),
    };
    ExprError::new(ExprErrorKind::Evaluation, node.at, message)
}

/// Evaluates an operation that gives booleans.
fn condition(node: &Bound, rows: &Rows) -> Result<Value, ExprError> {
    match &node.kind {
        BoundKind::Not(operand) => {
            let operand = evaluate(operand, rows)?;
            let result = boolean::not(operand.booleans()).map_err(|error| failed(node, &error))?;
            Ok(Value::result(result, [&operand]))
        }
        BoundKind::Compare { op, left, right } => {
            let (left, right) = (evaluate(left, rows)?, evaluate(right, rows)?);
            let result = compare(*op, &left, &right).map_err(|error| failed(node, &error))?;
            Ok(Value::result(result, [&left, &right]))
        }
        BoundKind::Divisible {
            operand,
            by,
            negated,
        } => {
            let operand = evaluate(operand, rows)?;
            let result = by.test(operand.array.as_ref(), *negated);
            Ok(Value::result(result, [&operand]))
        }
        BoundKind::Logic { op, operands } => conditional::logic(*op, operands, rows),
        BoundKind::Is {
            operand,
            test,
            negated,
        } => {
            let operand = evaluate(operand, rows)?;
            is(&operand, *test, *negated).map_err(|error| failed(node, &error))
        }
        BoundKind::InList {
            operand,
            list,
            negated,
        } => {
            let operand = evaluate(operand, rows)?;
            let list = evaluate_all(list, rows)?;
            in_list(&operand, &list, *negated, rows.count).map_err(|error| failed(node, &error))
        }
        BoundKind::Between {
            operand,
            low,
            high,
            negated,
        } => {
            let operand = evaluate(operand, rows)?;
            let (low, high) = (evaluate(low, rows)?, evaluate(high, rows)?);
            between(&operand, &low, &high, *negated, rows.count)
                .map_err(|error| failed(node, &error))
        }
        BoundKind::Like {
            operand,
            pattern,
            negated,
            any_case,
        } => {
            let (operand, pattern) = (evaluate(operand, rows)?, evaluate(pattern, rows)?);
            like(&operand, &pattern, *negated, *any_case).map_err(|error| failed(node, &error))
        }
        _ => unreachable!("every other operation is evaluated by the caller"),
    }
}

fn evaluate_all(nodes: &[Bound], rows: &Rows) -> Result<Vec<Value>, ExprError> {
    nodes.iter().map(|node| evaluate(node, rows)).collect()
}

fn column(node: &Bound, index: usize, rows: &Rows) -> Result<Value, ExprError> {
    let found = rows.columns.get(index).map(|column| column.data_type());
    if found != Some(&node.data_type) {
        let found = found.map_or_else(|| "nothing".to_string(), ToString::to_string);
        let message = format!(
            "the batch has {found} at position {index}, where `{}` was bound as {}; \
             bind the expression to the schema of the batch",
            node.text, node.data_type
        );
        return Err(ExprError::new(ExprErrorKind::Schema, node.at, message));
    }
    Ok(Value::column(Arc::clone(&rows.columns[index])))
}

fn arithmetic(op: ArithmeticOp, left: &Value, right: &Value) -> Result<Value, ArrowError> {
    let array = match op {
        ArithmeticOp::Add => numeric::add(left, right),
        ArithmeticOp::Subtract => numeric::sub(left, right),
        ArithmeticOp::Multiply => numeric::mul(left, right),
        ArithmeticOp::Divide => numeric::div(left, right),
        ArithmeticOp::Remainder => numeric::rem(left, right),
    }?;
    Ok(Value {
        array,
        scalar: left.scalar && right.scalar,
    })
}

fn is(operand: &Value, test: IsTest, negated: bool) -> Result<Value, ArrowError> {
    let result = match (test, negated) {
        (IsTest::Null, false) => boolean::is_null(&operand.array)?,
        (IsTest::Null, true) => boolean::is_not_null(&operand.array)?,
        (test, negated) => {
            let wanted = BooleanArray::new_scalar(test == IsTest::True);
            let compare = if negated {
                arrow::compute::kernels::cmp::distinct
            } else {
                arrow::compute::kernels::cmp::not_distinct
            };
            compare(&operand.booleans(), &wanted)?
        }
    };
    Ok(Value::result(result, [operand]))
}

fn in_list(
    operand: &Value,
    list: &[Value],
    negated: bool,
    rows: usize,
) -> Result<Value, ArrowError> {
    // A row of the result is a scalar only if all parts are.
    let scalar = operand.scalar && list.iter().all(|item| item.scalar);
    let length = if scalar { 1 } else { rows };
    let mut found = BooleanArray::from(vec![false; length]);
    for item in list {
        let equal = compare(CompareOp::Equal, operand, item)?;
        let equal = Value::result(equal, [operand, item]).expand(length)?;
        found = boolean::or_kleene(&found, Value::column(equal).booleans())?;
    }
    if negated {
        found = boolean::not(&found)?;
    }
    Ok(Value {
        array: Arc::new(found),
        scalar,
    })
}

fn like(
    operand: &Value,
    pattern: &Value,
    negated: bool,
    any_case: bool,
) -> Result<Value, ArrowError> {
    let kernel = match (any_case, negated) {
        (false, false) => comparison::like,
        (false, true) => comparison::nlike,
        (true, false) => comparison::ilike,
        (true, true) => comparison::nilike,
    };
    Ok(Value::result(kernel(operand, pattern)?, [operand, pattern]))
}

fn between(
    operand: &Value,
    low: &Value,
    high: &Value,
    negated: bool,
    rows: usize,
) -> Result<Value, ArrowError> {
    let above = compare(CompareOp::GreaterOrEqual, operand, low)?;
    let below = compare(CompareOp::LessOrEqual, operand, high)?;
    let above = Value::result(above, [operand, low]);
    let below = Value::result(below, [operand, high]);
    let within = conditional::combine(super::ast::LogicOp::And, &above, &below, rows)?;
    if !negated {
        return Ok(within);
    }
    Ok(Value::result(boolean::not(within.booleans())?, [&within]))
}

/// The values of a bound expression as an array of the right type and length.
pub(super) fn evaluate_column(
    node: &Bound,
    rows: &Rows,
) -> Result<arrow::array::ArrayRef, ExprError> {
    let value = evaluate(node, rows)?;
    debug_assert_eq!(value.array.data_type(), &node.data_type);
    value
        .expand(rows.count)
        .map_err(|error| failed(node, &error))
}
