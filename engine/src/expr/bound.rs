//! The bound form of an expression: columns by index, types chosen, casts in place.

use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::DataType;

use super::ast::{ArithmeticOp, CompareOp, IsTest, LogicOp};
use super::coerce::{LiteralKind, Operand, cast_can_fail};
use super::divisible::Divisor;
use super::error::{ExprError, Position};
use super::functions::Function;

/// A cast that fails instead of giving null.
pub(super) const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) kind: BoundKind,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    /// Whether some value makes it fail. Such a part is evaluated only on the
    /// rows that need it, so that a guard before it works.
    pub(super) fallible: bool,
    pub(super) at: Position,
    /// As SQL, for errors.
    pub(super) text: String,
}

#[derive(Clone, Debug)]
pub(super) enum BoundKind {
    Column(usize),
    /// One value in an array of length 1.
    Literal(ArrayRef, LiteralKind),
    Negate(Box<Bound>),
    Not(Box<Bound>),
    Arithmetic {
        op: ArithmeticOp,
        left: Box<Bound>,
        right: Box<Bound>,
    },
    Compare {
        op: CompareOp,
        left: Box<Bound>,
        right: Box<Bound>,
    },
    /// `operand % constant = 0`, or `<> 0`.
    Divisible {
        operand: Box<Bound>,
        by: Divisor,
        negated: bool,
    },
    Logic {
        op: LogicOp,
        operands: Vec<Bound>,
    },
    Is {
        operand: Box<Bound>,
        test: IsTest,
        negated: bool,
    },
    InList {
        operand: Box<Bound>,
        list: Vec<Bound>,
        negated: bool,
    },
    Between {
        operand: Box<Bound>,
        low: Box<Bound>,
        high: Box<Bound>,
        negated: bool,
    },
    Like {
        operand: Box<Bound>,
        pattern: Box<Bound>,
        negated: bool,
        any_case: bool,
    },
    Case {
        operand: Option<Box<Bound>>,
        branches: Vec<(Bound, Bound)>,
        otherwise: Option<Box<Bound>>,
    },
    Cast {
        operand: Box<Bound>,
        lenient: bool,
    },
    Call {
        function: Function,
        arguments: Vec<Bound>,
    },
}

impl Bound {
    pub(super) fn as_operand(&self) -> Operand<'_> {
        let literal = match &self.kind {
            BoundKind::Literal(_, kind) => Some(*kind),
            _ => None,
        };
        Operand {
            data_type: &self.data_type,
            literal,
        }
    }

    /// The same value as `to`: a literal is cast now, anything else when evaluated.
    pub(super) fn coerce(self, to: &DataType) -> Result<Bound, ExprError> {
        if self.data_type == *to {
            return Ok(self);
        }
        if let BoundKind::Literal(value, literal) = &self.kind {
            let value = cast_with_options(value, to, &STRICT)
                .map_err(|_| self.mistyped(&format!("is not a {to}")))?;
            let kind = BoundKind::Literal(value, *literal);
            return Ok(Bound {
                kind,
                data_type: to.clone(),
                ..self
            });
        }
        self.cast(to, false)
    }

    /// A cast as the user writes it, or one that coercion puts in.
    pub(super) fn cast(self, to: &DataType, lenient: bool) -> Result<Bound, ExprError> {
        if !can_cast_types(&self.data_type, to) {
            let from = &self.data_type;
            return Err(self.mistyped(&format!("is {from}, which can't be cast to {to}")));
        }
        Ok(Bound {
            nullable: self.nullable || lenient,
            fallible: self.fallible || (!lenient && cast_can_fail(&self.data_type, to)),
            at: self.at,
            text: self.text.clone(),
            data_type: to.clone(),
            kind: BoundKind::Cast {
                operand: Box::new(self),
                lenient,
            },
        })
    }

    /// Refuses anything but a boolean or null.
    pub(super) fn require_boolean(self) -> Result<Bound, ExprError> {
        match self.data_type {
            DataType::Boolean => Ok(self),
            DataType::Null => self.coerce(&DataType::Boolean),
            ref other => Err(self.mistyped(&format!(
                "is {other} where a boolean is needed; compare it with something"
            ))),
        }
    }

    /// Whether it is the literal null, which has no type of its own.
    pub(super) fn is_untyped(&self) -> bool {
        self.data_type == DataType::Null
    }

    /// Marks the columns it reads.
    pub(super) fn mark_columns(&self, used: &mut Vec<bool>) {
        if let BoundKind::Column(index) = self.kind {
            if used.len() <= index {
                used.resize(index + 1, false);
            }
            used[index] = true;
        }
        for child in self.children() {
            child.mark_columns(used);
        }
    }

    pub(super) fn mistyped(&self, what: &str) -> ExprError {
        ExprError::mistyped(self.at, format!("`{}` {what}", self.text))
    }

    fn children(&self) -> Vec<&Bound> {
        match &self.kind {
            BoundKind::Column(_) | BoundKind::Literal(..) => vec![],
            BoundKind::Negate(operand)
            | BoundKind::Not(operand)
            | BoundKind::Is { operand, .. }
            | BoundKind::Divisible { operand, .. }
            | BoundKind::Cast { operand, .. } => vec![operand],
            BoundKind::Arithmetic { left, right, .. } | BoundKind::Compare { left, right, .. } => {
                vec![left, right]
            }
            BoundKind::Logic { operands, .. } => operands.iter().collect(),
            BoundKind::InList { operand, list, .. } => {
                std::iter::once(operand.as_ref()).chain(list).collect()
            }
            BoundKind::Between {
                operand, low, high, ..
            } => vec![operand, low, high],
            BoundKind::Like {
                operand, pattern, ..
            } => vec![operand, pattern],
            BoundKind::Case {
                operand,
                branches,
                otherwise,
            } => operand
                .iter()
                .map(AsRef::as_ref)
                .chain(branches.iter().flat_map(|(when, then)| [when, then]))
                .chain(otherwise.iter().map(AsRef::as_ref))
                .collect(),
            BoundKind::Call { arguments, .. } => arguments.iter().collect(),
        }
    }
}
