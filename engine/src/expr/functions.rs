//! The scalar functions: their names, arguments and types.

use arrow::array::Array;
use arrow::compute::cast_with_options;
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;

use super::bind::{unify, unify_ordered};
use super::bound::{Bound, BoundKind};
use super::coerce::{arithmetic_type, is_text};
use super::error::{ExprError, Position};
use super::value::Value;
use super::{conditional, dates, numbers, strings};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Floor,
    Ceil,
    Round,
    Upper,
    Lower,
    Length,
    Substr,
    Concat,
    /// The operator `||`.
    Join,
    Trim,
    TrimStart,
    TrimEnd,
    StartsWith,
    EndsWith,
    Contains,
    Coalesce,
    NullIf,
    Greatest,
    Least,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    DateTrunc,
}

/// Every function: its name, and the fewest and most arguments it takes.
pub(super) const FUNCTIONS: &[(Function, &str, usize, usize)] = &[
    (Function::Abs, "abs", 1, 1),
    (Function::Floor, "floor", 1, 1),
    (Function::Ceil, "ceil", 1, 1),
    (Function::Round, "round", 1, 2),
    (Function::Upper, "upper", 1, 1),
    (Function::Lower, "lower", 1, 1),
    (Function::Length, "length", 1, 1),
    (Function::Substr, "substr", 2, 3),
    (Function::Concat, "concat", 1, usize::MAX),
    (Function::Join, "||", 2, 2),
    (Function::Trim, "trim", 1, 1),
    (Function::TrimStart, "ltrim", 1, 1),
    (Function::TrimEnd, "rtrim", 1, 1),
    (Function::StartsWith, "starts_with", 2, 2),
    (Function::EndsWith, "ends_with", 2, 2),
    (Function::Contains, "contains", 2, 2),
    (Function::Coalesce, "coalesce", 1, usize::MAX),
    (Function::NullIf, "nullif", 2, 2),
    (Function::Greatest, "greatest", 1, usize::MAX),
    (Function::Least, "least", 1, usize::MAX),
    (Function::Year, "year", 1, 1),
    (Function::Month, "month", 1, 1),
    (Function::Day, "day", 1, 1),
    (Function::Hour, "hour", 1, 1),
    (Function::Minute, "minute", 1, 1),
    (Function::Second, "second", 1, 1),
    (Function::DateTrunc, "date_trunc", 2, 2),
];

/// A function with its arguments cast to what it takes, and what it gives.
pub(super) struct Typed {
    pub(super) arguments: Vec<Bound>,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    pub(super) fallible: bool,
}

impl Function {
    /// The function of this name, in any case.
    pub(super) fn named(name: &str) -> Option<Function> {
        let name = name.to_ascii_lowercase();
        let name = if name == "ceiling" {
            "ceil"
        } else {
            name.as_str()
        };
        FUNCTIONS
            .iter()
            .find(|entry| entry.1 == name)
            .map(|entry| entry.0)
    }

    pub(super) fn name(self) -> &'static str {
        FUNCTIONS
            .iter()
            .find(|entry| entry.0 == self)
            .map_or("", |entry| entry.1)
    }

    pub(super) fn is_date_part(self) -> bool {
        use Function::{Day, Hour, Minute, Month, Second, Year};
        matches!(self, Year | Month | Day | Hour | Minute | Second)
    }

    /// Refuses a call with too few or too many arguments.
    pub(super) fn check_count(self, at: Position, count: usize) -> Result<(), ExprError> {
        let (fewest, most) = FUNCTIONS
            .iter()
            .find(|entry| entry.0 == self)
            .map_or((0, usize::MAX), |entry| (entry.2, entry.3));
        if (fewest..=most).contains(&count) {
            return Ok(());
        }
        let takes = match most {
            usize::MAX => format!("{fewest} or more"),
            _ if fewest == most => fewest.to_string(),
            _ => format!("{fewest} to {most}"),
        };
        let name = self.name();
        Err(ExprError::mistyped(
            at,
            format!("{name} takes {takes} argument(s) and got {count}"),
        ))
    }

    /// Casts the arguments and finds the result type.
    pub(super) fn bind(self, at: Position, arguments: Vec<Bound>) -> Result<Typed, ExprError> {
        let any_null = arguments.iter().any(|argument| argument.nullable);
        let all_null = arguments.iter().all(|argument| argument.nullable);
        let typed = |arguments, data_type| Typed {
            arguments,
            data_type,
            nullable: any_null,
            fallible: false,
        };
        match self {
            Function::Abs | Function::Floor | Function::Ceil | Function::Round => {
                let arguments = numeric(arguments)?;
                let data_type = first_type(&arguments);
                let fallible = self == Function::Abs && data_type == DataType::Int64;
                Ok(Typed {
                    fallible,
                    ..typed(arguments, data_type)
                })
            }
            Function::Upper
            | Function::Lower
            | Function::Trim
            | Function::TrimStart
            | Function::TrimEnd
            | Function::Join => Ok(typed(texts(arguments)?, DataType::Utf8)),
            Function::Concat => Ok(Typed {
                nullable: false,
                ..typed(texts(arguments)?, DataType::Utf8)
            }),
            Function::Length => Ok(typed(texts(arguments)?, DataType::Int64)),
            Function::Substr => {
                let mut rest = arguments;
                let positions = rest.split_off(1);
                let mut arguments = texts(rest)?;
                for position in positions {
                    arguments.push(whole_number(position)?);
                }
                Ok(typed(arguments, DataType::Utf8))
            }
            Function::StartsWith | Function::EndsWith | Function::Contains => {
                Ok(typed(texts(arguments)?, DataType::Boolean))
            }
            Function::Coalesce | Function::Greatest | Function::Least | Function::NullIf => {
                let arguments = match self {
                    Function::Coalesce => unify(at, arguments)?,
                    _ => unify_ordered(at, arguments)?,
                };
                let data_type = first_type(&arguments);
                let nullable = all_null || self == Function::NullIf;
                Ok(Typed {
                    nullable,
                    ..typed(arguments, data_type)
                })
            }
            Function::DateTrunc => bind_date_trunc(arguments),
            _ => {
                // A part of a time outside of the calendar's range is null.
                let times = arguments
                    .into_iter()
                    .map(millis)
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(Typed {
                    nullable: true,
                    ..typed(times, DataType::Int64)
                })
            }
        }
    }

    /// Computes the result from arguments of the types that `bind` chose.
    ///
    /// COALESCE isn't among them: it evaluates its arguments one by one.
    pub(super) fn call(self, arguments: &[Value], rows: usize) -> Result<Value, ArrowError> {
        match self {
            Function::Abs | Function::Floor | Function::Ceil | Function::Round => {
                numbers::call(self, arguments, rows)
            }
            Function::NullIf | Function::Greatest | Function::Least | Function::Coalesce => {
                conditional::choose(self, arguments, rows)
            }
            Function::DateTrunc => dates::truncate(arguments),
            part if part.is_date_part() => dates::part(part, arguments),
            _ => strings::call(self, arguments, rows),
        }
    }
}

fn first_type(arguments: &[Bound]) -> DataType {
    arguments
        .first()
        .map_or(DataType::Null, |first| first.data_type.clone())
}

fn numeric(arguments: Vec<Bound>) -> Result<Vec<Bound>, ExprError> {
    let mut rest = arguments;
    let digits = rest.split_off(1);
    let mut arguments = Vec::new();
    for argument in rest {
        let to = arithmetic_type(argument.at, &[argument.as_operand()])?;
        arguments.push(argument.coerce(&to)?);
    }
    for digit in digits {
        arguments.push(whole_number(digit)?);
    }
    Ok(arguments)
}

fn whole_number(argument: Bound) -> Result<Bound, ExprError> {
    if argument.data_type.is_integer() || argument.is_untyped() {
        return argument.coerce(&DataType::Int64);
    }
    let found = &argument.data_type;
    Err(argument.mistyped(&format!(
        "is {found} where an integer is needed; cast it to BIGINT"
    )))
}

fn texts(arguments: Vec<Bound>) -> Result<Vec<Bound>, ExprError> {
    let text = |argument: Bound| {
        if is_text(&argument.data_type) || argument.is_untyped() {
            return argument.coerce(&DataType::Utf8);
        }
        let found = &argument.data_type;
        Err(argument.mistyped(&format!(
            "is {found} where text is needed; cast it to VARCHAR"
        )))
    };
    arguments.into_iter().map(text).collect()
}

/// A time as int64 milliseconds since 1970 in UTC.
fn millis(argument: Bound) -> Result<Bound, ExprError> {
    let to = match &argument.data_type {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Date32 => DataType::Timestamp(TimeUnit::Millisecond, None),
        found if found.is_integer() || argument.is_untyped() => DataType::Int64,
        found => {
            return Err(argument.mistyped(&format!(
                "is {found} where a time is needed; cast it to BIGINT (milliseconds) or TIMESTAMP"
            )));
        }
    };
    argument.coerce(&to)?.coerce(&DataType::Int64)
}

fn bind_date_trunc(arguments: Vec<Bound>) -> Result<Typed, ExprError> {
    let mut arguments = arguments;
    let time = arguments.split_off(1);
    let [unit] = arguments.as_slice() else {
        unreachable!("the number of arguments is checked when parsing");
    };
    let known = match &unit.kind {
        BoundKind::Literal(value, _) => dates::unit(value.as_ref()).is_some(),
        _ => false,
    };
    if !known {
        let units = dates::unit_names().join(", ");
        return Err(unit.mistyped(&format!("is no unit; write one of {units} as a string")));
    }
    let time = time
        .into_iter()
        .map(millis)
        .collect::<Result<Vec<_>, _>>()?;
    arguments.extend(time);
    // It fails for a time at the very beginning of int64, and is null
    // where a month or a year is asked of a time outside of the calendar.
    Ok(Typed {
        arguments,
        data_type: DataType::Int64,
        nullable: true,
        fallible: true,
    })
}

/// A cast as evaluation does it; a lenient one gives null where it can't.
pub(super) fn cast_value(
    value: &dyn Array,
    to: &DataType,
    lenient: bool,
) -> Result<arrow::array::ArrayRef, ArrowError> {
    let options = arrow::compute::CastOptions {
        safe: lenient,
        ..super::bound::STRICT
    };
    cast_with_options(value, to, &options)
}
