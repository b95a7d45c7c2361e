//! The parsed, unresolved form of an expression.
//!
//! It is ours and not sqlparser's, so that everything that expressions don't
//! support is refused once, when the text is parsed, and so that its depth is
//! bounded: binding and printing recurse over it.

use std::fmt;

use arrow::datatypes::DataType;

use super::error::Position;
use super::functions::Function;
use super::sql_types::sql_name;

/// One operation with its operands, and where it stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeKind {
    Column(String),
    Literal(Literal),
    Negate(Box<Node>),
    Not(Box<Node>),
    Arithmetic {
        op: ArithmeticOp,
        left: Box<Node>,
        right: Box<Node>,
    },
    Compare {
        op: CompareOp,
        left: Box<Node>,
        right: Box<Node>,
    },
    /// Two or more operands: a chain of one operator is one node, so that a
    /// long condition isn't a deep one.
    Logic {
        op: LogicOp,
        operands: Vec<Node>,
    },
    Is {
        operand: Box<Node>,
        test: IsTest,
        negated: bool,
    },
    InList {
        operand: Box<Node>,
        list: Vec<Node>,
        negated: bool,
    },
    Between {
        operand: Box<Node>,
        low: Box<Node>,
        high: Box<Node>,
        negated: bool,
    },
    Like {
        operand: Box<Node>,
        pattern: Box<Node>,
        negated: bool,
        any_case: bool,
    },
    Case {
        operand: Option<Box<Node>>,
        branches: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Cast {
        operand: Box<Node>,
        to: DataType,
        lenient: bool,
    },
    Call {
        function: Function,
        arguments: Vec<Node>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Boolean(bool),
    /// Within the range of int64 or of uint64.
    Integer(i128),
    Float(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArithmeticOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Distinct,
    NotDistinct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogicOp {
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IsTest {
    Null,
    True,
    False,
}

impl Node {
    pub(super) fn new(at: Position, kind: NodeKind) -> Self {
        Node { kind, at }
    }

    /// The operands, in the order of the text.
    pub(super) fn children(&self) -> Vec<&Node> {
        match &self.kind {
            NodeKind::Column(_) | NodeKind::Literal(_) => vec![],
            NodeKind::Negate(operand)
            | NodeKind::Not(operand)
            | NodeKind::Is { operand, .. }
            | NodeKind::Cast { operand, .. } => vec![operand],
            NodeKind::Arithmetic { left, right, .. } | NodeKind::Compare { left, right, .. } => {
                vec![left, right]
            }
            NodeKind::Logic { operands, .. } => operands.iter().collect(),
            NodeKind::InList { operand, list, .. } => {
                std::iter::once(operand.as_ref()).chain(list).collect()
            }
            NodeKind::Between {
                operand, low, high, ..
            } => vec![operand, low, high],
            NodeKind::Like {
                operand, pattern, ..
            } => vec![operand, pattern],
            NodeKind::Case {
                operand,
                branches,
                otherwise,
            } => operand
                .iter()
                .map(AsRef::as_ref)
                .chain(branches.iter().flat_map(|(when, then)| [when, then]))
                .chain(otherwise.iter().map(AsRef::as_ref))
                .collect(),
            NodeKind::Call { arguments, .. } => arguments.iter().collect(),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            NodeKind::Column(name) => write_name(f, name),
            NodeKind::Literal(literal) => write!(f, "{literal}"),
            NodeKind::Negate(operand) => write!(f, "-{}", Operand(operand)),
            NodeKind::Arithmetic { op, left, right } => {
                write!(f, "{} {} {}", Operand(left), op.symbol(), Operand(right))
            }
            NodeKind::Case {
                operand,
                branches,
                otherwise,
            } => write_case(f, operand.as_deref(), branches, otherwise.as_deref()),
            NodeKind::Cast {
                operand,
                to,
                lenient,
            } => {
                let word = if *lenient { "TRY_CAST" } else { "CAST" };
                write!(f, "{word}({operand} AS {})", sql_name(to))
            }
            NodeKind::Call {
                function: Function::Join,
                arguments,
            } => write_list(f, arguments.iter().map(Operand), " || "),
            NodeKind::Call {
                function,
                arguments,
            } => {
                write!(f, "{}(", function.name())?;
                write_list(f, arguments, ", ")?;
                write!(f, ")")
            }
            _ => write_condition(f, self),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => write!(f, "NULL"),
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Integer(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Text(value) => write!(f, "'{}'", value.replace('\'', "''")),
        }
    }
}

impl ArithmeticOp {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Subtract => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::Remainder => "%",
        }
    }
}

impl CompareOp {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            CompareOp::Equal => "=",
            CompareOp::NotEqual => "<>",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
            CompareOp::Distinct => "IS DISTINCT FROM",
            CompareOp::NotDistinct => "IS NOT DISTINCT FROM",
        }
    }
}

/// An operand in parentheses where it could be misread without them.
struct Operand<'a>(&'a Node);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            NodeKind::Column(_)
            | NodeKind::Literal(_)
            | NodeKind::Case { .. }
            | NodeKind::Cast { .. } => write!(f, "{}", self.0),
            NodeKind::Call { function, .. } if *function != Function::Join => {
                write!(f, "{}", self.0)
            }
            _ => write!(f, "({})", self.0),
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// Writes an operation that gives booleans.
fn write_condition(f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
    match &node.kind {
        NodeKind::Not(operand) => write!(f, "NOT {}", Operand(operand)),
        NodeKind::Compare { op, left, right } => {
            write!(f, "{} {} {}", Operand(left), op.symbol(), Operand(right))
        }
        NodeKind::Logic { op, operands } => {
            let word = if *op == LogicOp::And { " AND " } else { " OR " };
            write_list(f, operands.iter().map(Operand), word)
        }
        NodeKind::Is {
            operand,
            test,
            negated,
        } => {
            let word = match test {
                IsTest::Null => "NULL",
                IsTest::True => "TRUE",
                IsTest::False => "FALSE",
            };
            write!(f, "{} IS {}{word}", Operand(operand), not(*negated))
        }
        NodeKind::InList {
            operand,
            list,
            negated,
        } => {
            write!(f, "{} {}IN (", Operand(operand), not(*negated))?;
            write_list(f, list, ", ")?;
            write!(f, ")")
        }
        NodeKind::Between {
            operand,
            low,
            high,
            negated,
        } => {
            write!(f, "{} {}BETWEEN ", Operand(operand), not(*negated))?;
            write!(f, "{} AND {}", Operand(low), Operand(high))
        }
        NodeKind::Like {
            operand,
            pattern,
            negated,
            any_case,
        } => {
            let word = if *any_case { "ILIKE" } else { "LIKE" };
            write!(
                f,
                "{} {}{word} {}",
                Operand(operand),
                not(*negated),
                Operand(pattern)
            )
        }
        _ => unreachable!("every other operation is written by the caller"),
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_numeric())
        && !name.is_empty();
    if plain {
        write!(f, "{name}")
    } else {
        write!(f, "\"{}\"", name.replace('"', "\"\""))
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    between: &str,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            write!(f, "{between}")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

fn write_case(
    f: &mut fmt::Formatter<'_>,
    operand: Option<&Node>,
    branches: &[(Node, Node)],
    otherwise: Option<&Node>,
) -> fmt::Result {
    write!(f, "CASE")?;
    if let Some(operand) = operand {
        write!(f, " {operand}")?;
    }
    for (when, then) in branches {
        write!(f, " WHEN {when} THEN {then}")?;
    }
    if let Some(otherwise) = otherwise {
        write!(f, " ELSE {otherwise}")?;
    }
    write!(f, " END")
}
