//! What can go wrong with an expression, and where in its text.

use std::fmt;

/// A place in the text of an expression, counted in characters from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The column in that line, in characters, from 1.
    pub column: u64,
}

impl Position {
    /// The first character of a text.
    pub const START: Position = Position { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Which stage refused an expression, and so who can mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExprErrorKind {
    /// The text is not an SQL expression: correct the text.
    Syntax,
    /// The text is SQL, but of a kind that expressions don't have: rewrite it.
    Unsupported,
    /// The text is longer or nested deeper than the limits allow: split it.
    Limit,
    /// A column or a name is unknown or ambiguous: correct the name or the schema.
    Name,
    /// Types don't fit each other: add a cast or use another column.
    Type,
    /// A value in the data can't be computed with: guard the expression.
    Evaluation,
    /// A batch isn't of the schema the expression was bound to: bind it anew.
    Schema,
}

/// An expression that can't be parsed, bound or evaluated: says where, what, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct ExprError {
    kind: ExprErrorKind,
    at: Position,
    message: String,
}

impl ExprError {
    pub(super) fn new(kind: ExprErrorKind, at: Position, message: impl Into<String>) -> Self {
        ExprError {
            kind,
            at,
            message: message.into(),
        }
    }

    pub(super) fn unsupported(at: Position, construct: &str) -> Self {
        let message = format!(
            "{construct} is not supported in expressions; \
             docs/EXPRESSIONS.md lists what is"
        );
        ExprError::new(ExprErrorKind::Unsupported, at, message)
    }

    pub(super) fn mistyped(at: Position, message: impl Into<String>) -> Self {
        ExprError::new(ExprErrorKind::Type, at, message)
    }

    /// The stage that refused.
    pub fn kind(&self) -> ExprErrorKind {
        self.kind
    }

    /// The place in the text of the expression.
    pub fn position(&self) -> Position {
        self.at
    }

    /// What is wrong and what to do, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}
