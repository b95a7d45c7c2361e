//! Parts that are evaluated on some rows only: AND, OR, CASE, COALESCE.
//!
//! SQL users guard a division by a condition before it. So a part that can
//! fail is evaluated only on the rows that the parts before it leave open; one
//! that can't fail is evaluated on all rows, which is cheaper than choosing.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::kernels::{boolean, nullif};
use arrow::error::ArrowError;

use super::ast::{CompareOp, LogicOp};
use super::bound::Bound;
use super::compare::compare;
use super::error::ExprError;
use super::eval::{evaluate, failed};
use super::functions::Function;
use super::value::{Rows, Value, scatter};

/// AND or OR of two or more operands, in three-valued logic.
pub(super) fn logic(op: LogicOp, operands: &[Bound], rows: &Rows) -> Result<Value, ExprError> {
    let Some((first, rest)) = operands.split_first() else {
        return Ok(Value::scalar(Arc::new(BooleanArray::from(vec![
            op == LogicOp::And,
        ]))));
    };
    let mut result = evaluate(first, rows)?;
    for operand in rest {
        let next = if operand.fallible {
            let open = expand(
                operand,
                &open_rows(op, result.booleans()),
                result.scalar,
                rows,
            )?;
            evaluate_where(operand, rows, &open)?
        } else {
            evaluate(operand, rows)?
        };
        result =
            combine(op, &result, &next, rows.count).map_err(|error| failed(operand, &error))?;
    }
    Ok(result)
}

/// AND or OR of two values, in three-valued logic.
pub(super) fn combine(
    op: LogicOp,
    left: &Value,
    right: &Value,
    rows: usize,
) -> Result<Value, ArrowError> {
    let kernel = match op {
        LogicOp::And => boolean::and_kleene,
        LogicOp::Or => boolean::or_kleene,
    };
    if left.scalar == right.scalar {
        return Ok(Value::result(
            kernel(left.booleans(), right.booleans())?,
            [left, right],
        ));
    }
    let (left, right) = (
        Value::column(left.expand(rows)?),
        Value::column(right.expand(rows)?),
    );
    Ok(Value::result(
        kernel(left.booleans(), right.booleans())?,
        [&left, &right],
    ))
}

/// CASE: each branch is evaluated on the rows that no earlier branch took.
pub(super) fn case(
    node: &Bound,
    operand: Option<&Bound>,
    branches: &[(Bound, Bound)],
    otherwise: Option<&Bound>,
    rows: &Rows,
) -> Result<Value, ExprError> {
    let operand = operand.map(|operand| evaluate(operand, rows)).transpose()?;
    let mut open = BooleanArray::from(vec![true; rows.count]);
    let mut taken = Vec::with_capacity(branches.len());
    for (when, then) in branches {
        let mut condition = evaluate_where(when, rows, &open)?;
        if let Some(operand) = &operand {
            let equal = compare(CompareOp::Equal, operand, &condition)
                .map_err(|error| failed(when, &error))?;
            condition = Value::result(equal, [operand, &condition]);
        }
        let holds = expand(when, &is_true(condition.booleans()), condition.scalar, rows)?;
        let mask = BooleanArray::from(open.values() & holds.values());
        open = BooleanArray::from(open.values() & &!holds.values());
        taken.push((evaluate_where(then, rows, &mask)?, mask));
    }
    let mut result = match otherwise {
        Some(otherwise) => evaluate_where(otherwise, rows, &open)?,
        None => Value::null(&node.data_type),
    };
    for (value, mask) in &taken {
        let array = zip(mask, value, &result).map_err(|error| failed(node, &error))?;
        result = Value::column(array);
    }
    Ok(result)
}

/// The first argument that isn't null; a later one only where it is needed.
pub(super) fn coalesce(node: &Bound, arguments: &[Bound], rows: &Rows) -> Result<Value, ExprError> {
    let mut result = Value::null(&node.data_type);
    for argument in arguments {
        let missing = boolean::is_null(&result.array).map_err(|error| failed(node, &error))?;
        if missing.true_count() == 0 {
            break;
        }
        let missing = expand(node, &missing, result.scalar, rows)?;
        let next = evaluate_where(argument, rows, &missing)?;
        if result.scalar {
            // All rows are still null.
            result = next;
        } else {
            let array = zip(&missing, &next, &result).map_err(|error| failed(node, &error))?;
            result = Value::column(array);
        }
    }
    Ok(result)
}

/// NULLIF, GREATEST and LEAST of values of one type; the last two skip nulls.
pub(super) fn choose(
    function: Function,
    arguments: &[Value],
    rows: usize,
) -> Result<Value, ArrowError> {
    let scalar = arguments.iter().all(|argument| argument.scalar);
    let length = if scalar { 1 } else { rows };
    let mut expanded = Vec::with_capacity(arguments.len());
    for argument in arguments {
        expanded.push(Value::column(argument.expand(length)?));
    }
    let mut expanded = expanded.into_iter();
    let Some(mut result) = expanded.next() else {
        return Err(ArrowError::InvalidArgumentError("no arguments".to_string()));
    };
    for next in expanded {
        let array = match function {
            Function::NullIf => {
                nullif::nullif(&result.array, &compare(CompareOp::Equal, &result, &next)?)?
            }
            Function::Greatest => pick(CompareOp::Greater, &next, &result)?,
            _ => pick(CompareOp::Less, &next, &result)?,
        };
        result = Value::column(array);
    }
    Ok(Value { scalar, ..result })
}

/// Evaluates a part where the mask is true; elsewhere the result means nothing.
fn evaluate_where(part: &Bound, rows: &Rows, mask: &BooleanArray) -> Result<Value, ExprError> {
    let chosen = mask.true_count();
    if part.fallible && chosen == 0 {
        return Ok(Value::null(&part.data_type));
    }
    if !part.fallible || chosen == rows.count {
        return evaluate(part, rows);
    }
    let subset = rows
        .filter(mask, part)
        .map_err(|error| failed(part, &error))?;
    let values = evaluate(part, &subset)?;
    scatter(&values, mask).map_err(|error| failed(part, &error))
}

/// `next` where it is there and beats `best` or `best` is null.
fn pick(op: CompareOp, next: &Value, best: &Value) -> Result<arrow::array::ArrayRef, ArrowError> {
    let beats = is_true(&compare(op, next, best)?);
    let missing = boolean::is_null(&best.array)?;
    zip(&boolean::or(&beats, &missing)?, &next.array, &best.array)
}

/// The rows that the operands so far don't decide.
fn open_rows(op: LogicOp, so_far: &BooleanArray) -> BooleanArray {
    let decisive = op == LogicOp::Or;
    let decided = if decisive {
        so_far.values().clone()
    } else {
        !so_far.values()
    };
    let open = match so_far.nulls() {
        None => !&decided,
        Some(valid) => !&(&decided & valid.inner()),
    };
    BooleanArray::from(open)
}

/// True where it is true, false where it is false or null.
pub(super) fn is_true(values: &BooleanArray) -> BooleanArray {
    match values.nulls() {
        None => values.clone(),
        Some(valid) => BooleanArray::from(values.values() & valid.inner()),
    }
}

fn expand(
    part: &Bound,
    mask: &BooleanArray,
    scalar: bool,
    rows: &Rows,
) -> Result<BooleanArray, ExprError> {
    if !scalar {
        return Ok(mask.clone());
    }
    if mask.is_empty() {
        return Err(failed(
            part,
            &ArrowError::ComputeError("an empty scalar".to_string()),
        ));
    }
    let all = if mask.value(0) {
        BooleanBuffer::new_set(rows.count)
    } else {
        BooleanBuffer::new_unset(rows.count)
    };
    Ok(BooleanArray::from(all))
}
