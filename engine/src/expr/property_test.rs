//! Goal: what Arrow's kernels compute a batch at a time is what SQL means row
//! by row, errors included. Method: random expressions over random columns are
//! evaluated both ways; the naive side knows neither arrays nor laziness.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};

use super::Expr;

const CASES: u64 = 3000;
const ROWS: usize = 9;

/// SplitMix64, so that a seed replays on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Int(Option<i64>),
    Float(Option<f64>),
    Bool(Option<bool>),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Float,
    Bool,
}

enum Tree {
    Column(Kind, usize),
    Literal(Cell),
    Arithmetic(&'static str, Box<Tree>, Box<Tree>),
    Negate(Box<Tree>),
    Compare(&'static str, Box<Tree>, Box<Tree>),
    Logic(&'static str, Vec<Tree>),
    Not(Box<Tree>),
    Is(&'static str, Box<Tree>),
    Between(Box<Tree>, Box<Tree>, Box<Tree>),
    In(Box<Tree>, Vec<Tree>),
    Case(Box<Tree>, Box<Tree>, Box<Tree>),
    Coalesce(Box<Tree>, Box<Tree>),
    NullIf(Box<Tree>, Box<Tree>),
}

const INTS: &[i64] = &[0, 1, -1, 2, 3, 7, -5, i64::MAX, i64::MIN];
const FLOATS: &[f64] = &[0.0, -0.0, 1.5, -2.0, 1e300, f64::INFINITY, f64::NAN];
const FLOAT_LITERALS: &[f64] = &[0.0, 1.5, 2.25, 1e300];

fn tree(random: &mut Random, kind: Kind, depth: u32) -> Tree {
    if depth == 0 || random.below(6) == 0 {
        return leaf(random, kind);
    }
    let depth = depth - 1;
    match random.below(4) {
        0 => {
            let mut boxed = |kind| Box::new(tree(random, kind, depth));
            Tree::Case(boxed(Kind::Bool), boxed(kind), boxed(kind))
        }
        1 => {
            let mut boxed = |kind| Box::new(tree(random, kind, depth));
            Tree::Coalesce(boxed(kind), boxed(kind))
        }
        _ if kind == Kind::Bool => condition(random, depth),
        _ => number(random, kind, depth),
    }
}

fn leaf(random: &mut Random, kind: Kind) -> Tree {
    if random.below(3) > 0 {
        return Tree::Column(kind, random.below(2) as usize);
    }
    Tree::Literal(match kind {
        Kind::Int => Cell::Int(Some(random.pick(INTS))),
        Kind::Float => Cell::Float(Some(random.pick(FLOAT_LITERALS))),
        Kind::Bool => Cell::Bool(Some(random.below(2) == 0)),
    })
}

fn number(random: &mut Random, kind: Kind, depth: u32) -> Tree {
    let op = random.pick(&["+", "-", "*", "/", "%"]);
    let choice = random.below(5);
    let other = if kind == Kind::Float && random.below(3) == 0 {
        Kind::Int
    } else {
        kind
    };
    let mut boxed = |kind| Box::new(tree(random, kind, depth));
    match choice {
        0 => Tree::Negate(boxed(kind)),
        1 => Tree::NullIf(boxed(kind), boxed(kind)),
        _ => Tree::Arithmetic(op, boxed(kind), boxed(other)),
    }
}

fn condition(random: &mut Random, depth: u32) -> Tree {
    let op = random.pick(&[
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "IS DISTINCT FROM",
        "IS NOT DISTINCT FROM",
    ]);
    let logic = random.pick(&["AND", "OR"]);
    let is = random.pick(&["IS NULL", "IS NOT NULL"]);
    let truth = random.pick(&["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"]);
    let kind = random.pick(&[Kind::Int, Kind::Float]);
    let other = random.pick(&[Kind::Int, Kind::Float]);
    let choice = random.below(9);
    let mut boxed = |kind| Box::new(tree(random, kind, depth));
    match choice {
        0 | 1 => Tree::Compare(op, boxed(kind), boxed(other)),
        2 | 3 => Tree::Logic(logic, (0..3).map(|_| *boxed(Kind::Bool)).collect()),
        4 => Tree::Not(boxed(Kind::Bool)),
        5 => Tree::Is(is, boxed(kind)),
        6 => Tree::Is(truth, boxed(Kind::Bool)),
        7 => Tree::Between(boxed(kind), boxed(kind), boxed(kind)),
        _ => Tree::In(boxed(kind), (0..2).map(|_| *boxed(kind)).collect()),
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Column(Kind::Int, index) => write!(f, "i{index}"),
            Tree::Column(Kind::Float, index) => write!(f, "f{index}"),
            Tree::Column(Kind::Bool, index) => write!(f, "b{index}"),
            Tree::Literal(Cell::Int(Some(value))) => write!(f, "({value})"),
            Tree::Literal(Cell::Float(Some(value))) => write!(f, "{value:?}"),
            Tree::Literal(Cell::Bool(Some(value))) => write!(f, "{value}"),
            Tree::Literal(_) => write!(f, "NULL"),
            Tree::Arithmetic(op, left, right) | Tree::Compare(op, left, right) => {
                write!(f, "({left} {op} {right})")
            }
            Tree::Negate(operand) => write!(f, "(- {operand})"),
            Tree::Logic(op, operands) => {
                let all: Vec<String> = operands.iter().map(Tree::to_string).collect();
                write!(f, "({})", all.join(&format!(" {op} ")))
            }
            Tree::Not(operand) => write!(f, "(NOT {operand})"),
            Tree::Is(test, operand) => write!(f, "({operand} {test})"),
            Tree::Between(operand, low, high) => {
                write!(f, "({operand} BETWEEN {low} AND {high})")
            }
            Tree::In(operand, list) => write!(f, "({operand} IN ({}, {}))", list[0], list[1]),
            Tree::Case(when, then, otherwise) => {
                write!(f, "CASE WHEN {when} THEN {then} ELSE {otherwise} END")
            }
            Tree::Coalesce(left, right) => write!(f, "coalesce({left}, {right})"),
            Tree::NullIf(left, right) => write!(f, "nullif({left}, {right})"),
        }
    }
}

type Row = [Cell; 6];

/// The value of one row, or the failure that SQL demands.
fn interpret(tree: &Tree, row: &Row) -> Result<Cell, &'static str> {
    Ok(match tree {
        Tree::Column(Kind::Int, index) => row[*index],
        Tree::Column(Kind::Float, index) => row[2 + index],
        Tree::Column(Kind::Bool, index) => row[4 + index],
        Tree::Literal(cell) => *cell,
        Tree::Arithmetic(op, left, right) => {
            arithmetic(op, interpret(left, row)?, interpret(right, row)?)?
        }
        Tree::Negate(operand) => match interpret(operand, row)? {
            Cell::Int(Some(value)) => Cell::Int(Some(value.checked_neg().ok_or("overflow")?)),
            Cell::Float(value) => Cell::Float(value.map(|value| -value)),
            other => other,
        },
        Tree::Compare(op, left, right) => {
            Cell::Bool(compare(op, interpret(left, row)?, interpret(right, row)?))
        }
        Tree::Logic(op, operands) => Cell::Bool(logic(op, operands, row)?),
        Tree::Not(operand) => Cell::Bool(boolean(interpret(operand, row)?).map(|value| !value)),
        Tree::Is(test, operand) => {
            let value = interpret(operand, row)?;
            Cell::Bool(Some(match *test {
                "IS NULL" => is_null(value),
                "IS NOT NULL" => !is_null(value),
                "IS TRUE" => value == Cell::Bool(Some(true)),
                "IS NOT TRUE" => value != Cell::Bool(Some(true)),
                "IS FALSE" => value == Cell::Bool(Some(false)),
                _ => value != Cell::Bool(Some(false)),
            }))
        }
        Tree::Between(operand, low, high) => {
            let operand = interpret(operand, row)?;
            let (low, high) = (interpret(low, row)?, interpret(high, row)?);
            Cell::Bool(
                match (compare(">=", operand, low), compare("<=", operand, high)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
            )
        }
        Tree::In(operand, list) => {
            let operand = interpret(operand, row)?;
            Cell::Bool(contains(operand, list, row)?)
        }
        Tree::Case(when, then, otherwise) => {
            let holds = interpret(when, row)? == Cell::Bool(Some(true));
            interpret(if holds { then } else { otherwise }, row)?
        }
        Tree::Coalesce(left, right) => match interpret(left, row)? {
            value if is_null(value) => interpret(right, row)?,
            value => value,
        },
        Tree::NullIf(left, right) => {
            let (left, right) = (interpret(left, row)?, interpret(right, row)?);
            match (compare("=", left, right), left) {
                (Some(true), Cell::Int(_)) => Cell::Int(None),
                (Some(true), _) => Cell::Float(None),
                _ => left,
            }
        }
    })
}

fn contains(operand: Cell, list: &[Tree], row: &Row) -> Result<Option<bool>, &'static str> {
    let mut equals = Vec::new();
    for item in list {
        equals.push(compare("=", operand, interpret(item, row)?));
    }
    Ok(match () {
        () if equals.contains(&Some(true)) => Some(true),
        () if equals.contains(&None) => None,
        () => Some(false),
    })
}

fn logic(op: &str, operands: &[Tree], row: &Row) -> Result<Option<bool>, &'static str> {
    let decisive = op == "OR";
    let mut unknown = false;
    for operand in operands {
        match boolean(interpret(operand, row)?) {
            Some(value) if value == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!decisive) })
}

fn arithmetic(op: &str, left: Cell, right: Cell) -> Result<Cell, &'static str> {
    if let (Cell::Int(left), Cell::Int(right)) = (left, right) {
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(Cell::Int(None));
        };
        let result = match op {
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" | "%" if right == 0 => return Err("division by zero"),
            "/" => left.checked_div(right),
            _ => Some(left.wrapping_rem(right)),
        };
        return Ok(Cell::Int(Some(result.ok_or("overflow")?)));
    }
    let (Some(left), Some(right)) = (float(left), float(right)) else {
        return Ok(Cell::Float(None));
    };
    Ok(Cell::Float(Some(match op {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        _ => left % right,
    })))
}

fn compare(op: &str, left: Cell, right: Cell) -> Option<bool> {
    use std::cmp::Ordering;
    if op.starts_with("IS") {
        let same = match (is_null(left), is_null(right)) {
            (true, true) => true,
            (false, false) => compare("=", left, right) == Some(true),
            _ => false,
        };
        return Some(same == (op == "IS NOT DISTINCT FROM"));
    }
    let ordering = match (left, right) {
        (Cell::Int(left), Cell::Int(right)) => left?.cmp(&right?),
        (left, right) => {
            let (left, right) = (float(left)?, float(right)?);
            left.partial_cmp(&right)
                .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
        }
    };
    Some(match op {
        "=" => ordering == Ordering::Equal,
        "<>" => ordering != Ordering::Equal,
        "<" => ordering == Ordering::Less,
        "<=" => ordering != Ordering::Greater,
        ">" => ordering == Ordering::Greater,
        _ => ordering != Ordering::Less,
    })
}

fn float(cell: Cell) -> Option<f64> {
    match cell {
        Cell::Int(value) => value.map(|value| value as f64),
        Cell::Float(value) => value,
        Cell::Bool(_) => None,
    }
}

fn boolean(cell: Cell) -> Option<bool> {
    match cell {
        Cell::Bool(value) => value,
        _ => None,
    }
}

fn is_null(cell: Cell) -> bool {
    matches!(cell, Cell::Int(None) | Cell::Float(None) | Cell::Bool(None))
}

fn table(random: &mut Random) -> Vec<Row> {
    let count = 1 + random.below(ROWS as u64);
    let mut row = || {
        let mut there = [false; 6];
        there.fill_with(|| random.below(4) > 0);
        [
            Cell::Int(there[0].then(|| random.pick(INTS))),
            Cell::Int(there[1].then(|| random.pick(INTS))),
            Cell::Float(there[2].then(|| random.pick(FLOATS))),
            Cell::Float(there[3].then(|| random.pick(FLOATS))),
            Cell::Bool(there[4].then(|| random.below(2) == 0)),
            Cell::Bool(there[5].then(|| random.below(2) == 0)),
        ]
    };
    (0..count).map(|_| row()).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let names = ["i0", "i1", "f0", "f1", "b0", "b1"];
    let column = |index: usize| -> ArrayRef {
        let cells = rows.iter().map(|row| row[index]);
        match index {
            0 | 1 => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Cell::Int(value) => value,
                _ => None,
            }))),
            2 | 3 => Arc::new(Float64Array::from_iter(cells.map(float))),
            _ => Arc::new(BooleanArray::from_iter(cells.map(boolean))),
        }
    };
    let columns: Vec<ArrayRef> = (0..names.len()).map(column).collect();
    let field =
        |(name, array): (&&str, &ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let fields: Vec<Field> = names.iter().zip(&columns).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn cell(array: &dyn Array, row: usize) -> Cell {
    let there = array.is_valid(row);
    match array.data_type() {
        DataType::Int64 => Cell::Int(there.then(|| array.as_primitive::<Int64Type>().value(row))),
        DataType::Float64 => {
            Cell::Float(there.then(|| array.as_primitive::<Float64Type>().value(row)))
        }
        _ => Cell::Bool(there.then(|| array.as_boolean().value(row))),
    }
}

fn same(left: Cell, right: Cell) -> bool {
    match (left, right) {
        (Cell::Float(Some(left)), Cell::Float(Some(right))) => {
            left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
        }
        _ => left == right,
    }
}

#[test]
fn kernels_agree_with_a_naive_interpreter_row_by_row() {
    let seed = std::env::var("RINGWAY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x5EED_0001);
    let mut failures = 0;
    let mut lazy = 0;
    for case in 0..CASES {
        let mut random = Random(seed ^ (case << 32));
        let kind = random.pick(&[Kind::Int, Kind::Float, Kind::Bool]);
        let tree = tree(&mut random, kind, 4);
        let rows = table(&mut random);
        let text = tree.to_string();
        let label = format!("RINGWAY_SEED={seed}, case {case}: {text}");
        let batch = batch(&rows);
        let expected: Result<Vec<Cell>, _> = rows.iter().map(|row| interpret(&tree, row)).collect();
        let bound = Expr::parse(&text).and_then(|expr| expr.bind(&batch.schema()));
        let bound = bound.unwrap_or_else(|error| panic!("{label}: {error}"));
        match (expected, bound.evaluate(&batch)) {
            (Err(_), Err(_)) => failures += 1,
            (Ok(expected), Ok(found)) => {
                assert_eq!(found.len(), rows.len(), "{label}");
                let nulls = found.logical_null_count();
                assert!(
                    bound.nullable() || nulls == 0,
                    "{label}: null though denied"
                );
                for (row, expected) in expected.into_iter().enumerate() {
                    let found = cell(&found, row);
                    let agree = same(expected, found);
                    assert!(agree, "{label} of {:?}: {expected:?}, {found:?}", rows[row]);
                }
                lazy += u64::from(bound.bound.fallible);
            }
            (expected, found) => {
                panic!("{label}: {expected:?} and {found:?}: {rows:?}")
            }
        }
    }
    assert!(
        failures > CASES / 50,
        "only {failures} cases failed as they must"
    );
    assert!(
        lazy > CASES / 50,
        "only {lazy} cases could have failed and didn't"
    );
}
