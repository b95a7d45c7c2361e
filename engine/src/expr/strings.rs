//! Functions of text. Lengths and positions count characters, not bytes.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array, StringArray, StringBuilder};
use arrow::compute::kernels::comparison;
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;

use super::functions::Function;
use super::value::Value;

/// Computes a function whose first argument is utf8.
pub(super) fn call(
    function: Function,
    arguments: &[Value],
    rows: usize,
) -> Result<Value, ArrowError> {
    let [first, rest @ ..] = arguments else {
        return Err(ArrowError::InvalidArgumentError("no arguments".to_string()));
    };
    match (function, rest) {
        (Function::StartsWith, [part]) => found(comparison::starts_with(first, part)?, first, part),
        (Function::EndsWith, [part]) => found(comparison::ends_with(first, part)?, first, part),
        (Function::Contains, [part]) => found(comparison::contains(first, part)?, first, part),
        (Function::Length, []) => {
            let count = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let texts = first.array.as_string::<i32>();
            let lengths: Int64Array = texts.iter().map(|text| text.map(count)).collect();
            Ok(Value::result(lengths, [first]))
        }
        (Function::Upper, []) => build(arguments, rows, |row, out| {
            out.append(text(first, row).map(str::to_uppercase).as_deref())
        }),
        (Function::Lower, []) => build(arguments, rows, |row, out| {
            out.append(text(first, row).map(str::to_lowercase).as_deref())
        }),
        (Function::Trim, []) => build(arguments, rows, |row, out| {
            out.append(text(first, row).map(str::trim))
        }),
        (Function::TrimStart, []) => build(arguments, rows, |row, out| {
            out.append(text(first, row).map(str::trim_start))
        }),
        (Function::TrimEnd, []) => build(arguments, rows, |row, out| {
            out.append(text(first, row).map(str::trim_end))
        }),
        (Function::Substr, [start, length @ ..]) => build(arguments, rows, |row, out| {
            out.append(substr(first, start, length, row))
        }),
        (Function::Join | Function::Concat, _) => {
            // `||` with a null is null; concat takes a null as nothing.
            let skips = function == Function::Concat;
            let mut joined = String::new();
            build(arguments, rows, |row, out| {
                joined.clear();
                for argument in arguments {
                    match text(argument, row) {
                        Some(part) => joined.push_str(part),
                        None if skips => {}
                        None => return out.append(None),
                    }
                }
                out.append(Some(&joined))
            })
        }
        _ => Err(ArrowError::InvalidArgumentError(
            "an unexpected argument".to_string(),
        )),
    }
}

/// Text that is being built, within what one array can hold.
struct Out {
    texts: StringBuilder,
    bytes: usize,
}

impl Out {
    /// Appends one row; beyond 2 GiB, where the builder would panic, it refuses.
    fn append(&mut self, text: Option<&str>) -> Result<(), ArrowError> {
        self.bytes += text.map_or(0, str::len);
        if i32::try_from(self.bytes).is_err() {
            return Err(ArrowError::ComputeError(
                "the text of one batch exceeds 2 GiB; use smaller batches".to_string(),
            ));
        }
        self.texts.append_option(text);
        Ok(())
    }
}

fn build(
    arguments: &[Value],
    rows: usize,
    mut append: impl FnMut(usize, &mut Out) -> Result<(), ArrowError>,
) -> Result<Value, ArrowError> {
    let scalar = arguments.iter().all(|argument| argument.scalar);
    let length = if scalar { 1 } else { rows };
    let mut out = Out {
        texts: StringBuilder::with_capacity(length, 0),
        bytes: 0,
    };
    for row in 0..length {
        append(row, &mut out)?;
    }
    let texts: StringArray = out.texts.finish();
    Ok(Value {
        array: Arc::new(texts),
        scalar,
    })
}

fn text(value: &Value, row: usize) -> Option<&str> {
    let index = value.index(row);
    let texts = value.array.as_string::<i32>();
    texts.is_valid(index).then(|| texts.value(index))
}

fn number(value: &Value, row: usize) -> Option<i64> {
    let index = value.index(row);
    let numbers = value.array.as_primitive::<Int64Type>();
    numbers.is_valid(index).then(|| numbers.value(index))
}

/// The characters from `start`, counted from 1; a start before the text uses up
/// length, as in PostgreSQL, and a negative length gives nothing.
fn substr<'a>(first: &'a Value, start: &Value, length: &[Value], row: usize) -> Option<&'a str> {
    let text = text(first, row)?;
    let start = number(start, row)?;
    let end = match length.first() {
        Some(length) => start.saturating_add(number(length, row)?.max(0)),
        None => i64::MAX,
    };
    let skip = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
    let keep = usize::try_from(end.max(1) - start.max(1)).unwrap_or(0);
    let from = byte_at(text, skip);
    let rest = text.get(from..)?;
    rest.get(..byte_at(rest, keep))
}

fn byte_at(text: &str, characters: usize) -> usize {
    text.char_indices()
        .nth(characters)
        .map_or(text.len(), |(index, _)| index)
}

fn found(result: BooleanArray, left: &Value, right: &Value) -> Result<Value, ArrowError> {
    Ok(Value::result(result, [left, right]))
}
