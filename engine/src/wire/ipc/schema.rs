//! Whether the types of a schema make sense, before the library turns them into its own.

use arrow::ipc::{
    DateUnit, Endianness, Field, Int, IntervalUnit, Precision, Schema, TimeUnit, Type, UnionMode,
};

use crate::limits::{IPC_FIELDS_MAX, NESTING_MAX};

use super::error::IpcError;

/// Makes sure that every field of `schema`, at any depth, is of a type that there is.
pub(super) fn check_schema(schema: Schema<'_>) -> Result<(), IpcError> {
    if schema.endianness() != Endianness::Little {
        return Err(IpcError::malformed("big-endian data cannot be read"));
    }
    let Some(fields) = schema.fields() else {
        return Err(IpcError::malformed("a schema without a list of fields"));
    };
    let mut seen = 0;
    for field in fields {
        check_field(field, 0, &mut seen)?;
    }
    Ok(())
}

fn check_field(field: Field<'_>, depth: usize, seen: &mut usize) -> Result<(), IpcError> {
    *seen += 1;
    if *seen > IPC_FIELDS_MAX {
        return Err(IpcError::TooLarge {
            what: "fields of a schema",
            claimed: *seen as u64,
            max: IPC_FIELDS_MAX as u64,
        });
    }
    if depth >= NESTING_MAX {
        return Err(IpcError::TooLarge {
            what: "fields within fields of a schema",
            claimed: depth as u64 + 1,
            max: NESTING_MAX as u64,
        });
    }
    if let Some(dictionary) = field.dictionary() {
        let is_key = |index| is_int(index, &[8, 16, 32, 64]);
        if !dictionary.indexType().is_some_and(is_key) {
            return Err(refused(field, "dictionary keys that are no integers"));
        }
    }
    check_type(field).map_err(|reason| refused(field, reason))?;
    for child in field.children().into_iter().flatten() {
        check_field(child, depth + 1, seen)?;
    }
    Ok(())
}

fn refused(field: Field<'_>, reason: &str) -> IpcError {
    let (name, kind) = (field.name().unwrap_or_default(), field.type_type());
    IpcError::malformed(format_args!("the field `{name}` ({kind:?}): {reason}"))
}

/// Why the type of `field`, without its children, is none.
fn check_type(field: Field<'_>) -> Result<(), &'static str> {
    let is_sound = match field.type_type() {
        Type::Null | Type::Bool | Type::Struct_ => true,
        Type::Binary | Type::LargeBinary | Type::BinaryView => true,
        Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => true,
        Type::Int => is_some_and(field.type_as_int(), |int| is_int(int, &[8, 16, 32, 64])),
        Type::FloatingPoint => is_some_and(field.type_as_floating_point(), |float| {
            let precision = float.precision();
            [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&precision)
        }),
        Type::Decimal => return check_decimal(field),
        Type::FixedSizeBinary => is_some_and(field.type_as_fixed_size_binary(), |binary| {
            binary.byteWidth() >= 0
        }),
        Type::Date | Type::Time | Type::Timestamp | Type::Duration | Type::Interval => {
            is_time(field)
        }
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => {
            return children(field, 1);
        }
        Type::FixedSizeList => {
            children(field, 1)?;
            is_some_and(field.type_as_fixed_size_list(), |list| list.listSize() >= 0)
        }
        Type::Map => return check_map(field),
        Type::RunEndEncoded => return check_runs(field),
        Type::Union => return check_union(field),
        _ => return Err("there is no such type"),
    };
    is_sound.then_some(()).ok_or("a width or unit that is none")
}

fn is_some_and<T>(value: Option<T>, holds: impl FnOnce(T) -> bool) -> bool {
    value.is_some_and(holds)
}

fn is_int(int: Int<'_>, widths: &[i32]) -> bool {
    widths.contains(&int.bitWidth())
}

fn is_time(field: Field<'_>) -> bool {
    match field.type_type() {
        Type::Date => is_some_and(field.type_as_date(), |date| {
            [DateUnit::DAY, DateUnit::MILLISECOND].contains(&date.unit())
        }),
        Type::Time => is_some_and(field.type_as_time(), |time| {
            match (time.bitWidth(), time.unit()) {
                (32, unit) => [TimeUnit::SECOND, TimeUnit::MILLISECOND].contains(&unit),
                (64, unit) => [TimeUnit::MICROSECOND, TimeUnit::NANOSECOND].contains(&unit),
                _ => false,
            }
        }),
        Type::Timestamp => is_some_and(field.type_as_timestamp(), |time| is_unit(time.unit())),
        Type::Duration => is_some_and(field.type_as_duration(), |time| is_unit(time.unit())),
        _ => is_some_and(field.type_as_interval(), |interval| {
            let units = [
                IntervalUnit::YEAR_MONTH,
                IntervalUnit::DAY_TIME,
                IntervalUnit::MONTH_DAY_NANO,
            ];
            units.contains(&interval.unit())
        }),
    }
}

fn is_unit(unit: TimeUnit) -> bool {
    (TimeUnit::SECOND.0..=TimeUnit::NANOSECOND.0).contains(&unit.0)
}

fn check_decimal(field: Field<'_>) -> Result<(), &'static str> {
    let decimal = field.type_as_decimal().ok_or("no precision")?;
    let precision_max = match decimal.bitWidth() {
        32 => 9,
        64 => 18,
        128 => 38,
        256 => 76,
        _ => return Err("decimals have 32, 64, 128 or 256 bits"),
    };
    let is_sound = (1..=precision_max).contains(&decimal.precision())
        && (-precision_max..=precision_max).contains(&decimal.scale());
    is_sound
        .then_some(())
        .ok_or("a precision or scale that its width cannot have")
}

fn children(field: Field<'_>, due: usize) -> Result<(), &'static str> {
    let count = field.children().map_or(0, |children| children.len());
    (count == due)
        .then_some(())
        .ok_or("more or fewer children than such a type has")
}

/// The one child of a map is a structure of key and value.
fn check_map(field: Field<'_>) -> Result<(), &'static str> {
    children(field, 1)?;
    if field.type_as_map().is_none() {
        return Err("no description of the map");
    }
    let entries = field.children().map(|children| children.get(0));
    let entries = entries
        .filter(|entries| entries.type_type() == Type::Struct_ && entries.dictionary().is_none());
    children(entries.ok_or("its entries are no structures")?, 2)
}

/// Run ends are signed integers without nulls; values may be anything.
fn check_runs(field: Field<'_>) -> Result<(), &'static str> {
    children(field, 2)?;
    let ends = field.children().map(|children| children.get(0));
    let is_sound = ends.is_some_and(|ends| {
        ends.dictionary().is_none()
            && is_some_and(ends.type_as_int(), |int| {
                int.is_signed() && is_int(int, &[16, 32, 64])
            })
    });
    is_sound
        .then_some(())
        .ok_or("its run ends are no signed integers of 16, 32 or 64 bits")
}

fn check_union(field: Field<'_>) -> Result<(), &'static str> {
    let union = field.type_as_union().ok_or("no description of the union")?;
    if ![UnionMode::Dense, UnionMode::Sparse].contains(&union.mode()) {
        return Err("a union is dense or sparse");
    }
    let count = field.children().map_or(0, |children| children.len());
    // A type id is an i8 that is not negative.
    let mut is_used = [false; 128];
    let Some(ids) = union.typeIds() else {
        return (count <= is_used.len())
            .then_some(())
            .ok_or("more children than there are type ids");
    };
    if ids.len() != count {
        return Err("more or fewer type ids than children");
    }
    for id in ids {
        let slot = usize::try_from(id).ok().and_then(|id| is_used.get_mut(id));
        match slot {
            Some(is_used) if !*is_used => *is_used = true,
            _ => return Err("a type id that is out of range, or used twice"),
        }
    }
    Ok(())
}
