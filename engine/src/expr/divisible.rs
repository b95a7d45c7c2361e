//! `x % c = 0` with a constant c: whether c divides x, without a division.
//!
//! A division takes some twenty times as long as a multiplication, and sampling by a number
//! is what filters are full of. With c = d * 2^k and d odd, c divides n exactly when
//! |n| * d^-1 (mod 2^64), rotated right by k, is at most (2^64 - 1) / c: multiplying by the
//! inverse of d is a division where it leaves no remainder, and gives something larger
//! otherwise; the rotation puts low bits that are not zero to the top.
//!
//! For an odd c the absolute value can go: with q = (2^63 - 1) / c the multiples of c are
//! those n for which n * c^-1 lies in -q to q, so n * c^-1 + q is at most 2q, unsigned.

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, Int64Type};

use super::ast::{ArithmeticOp, CompareOp};
use super::bound::{Bound, BoundKind};

/// From this constant on few numbers are expected to be multiples: at most every eighth of the
/// eights below holds one.
const RARE_FROM: u64 = 64;

/// A constant that values are tested to be divisible by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divisor {
    inverse: u64,
    shift: u32,
    quotient_max: u64,
}

impl Divisor {
    /// `None` for numbers below 2, for which `%` has its own cases.
    pub(super) fn new(constant: i64) -> Option<Self> {
        let constant = u64::try_from(constant)
            .ok()
            .filter(|constant| *constant > 1)?;
        let shift = constant.trailing_zeros();
        let quotient_max = u64::MAX / constant;
        Some(Self {
            inverse: inverse_of_odd(constant >> shift),
            shift,
            quotient_max,
        })
    }

    /// Whether the constant divides `value`.
    #[inline]
    pub(super) fn divides(self, value: i64) -> bool {
        let quotient = value.unsigned_abs().wrapping_mul(self.inverse);
        quotient.rotate_right(self.shift) <= self.quotient_max
    }

    /// For each of `values` whether the constant divides it (or, `negated`, does not).
    ///
    /// # Panics
    /// When the values are not int64.
    pub(super) fn test(self, values: &dyn Array, negated: bool) -> BooleanArray {
        let values = values.as_primitive::<Int64Type>();
        let numbers = values.values();
        let words = if self.shift == 0 {
            let (inverse, q) = (self.inverse, self.quotient_max / 2);
            let quotient = move |n: i64| n.cast_unsigned().wrapping_mul(inverse).wrapping_add(q);
            self.words(numbers, move |n| quotient(n) <= 2 * q)
        } else {
            self.words(numbers, move |n| self.divides(n))
        };
        let bits = BooleanBuffer::new(Buffer::from_vec(words), 0, numbers.len());
        let bits = if negated { !&bits } else { bits };
        BooleanArray::new(bits, values.nulls().cloned())
    }

    /// A bit of `divides` for each number, 64 in a word.
    fn words(self, numbers: &[i64], divides: impl Fn(i64) -> bool) -> Vec<u64> {
        let (chunks, rest) = numbers.as_chunks::<64>();
        let mut words = Vec::with_capacity(chunks.len() + 1);
        // The number of turns is known in each, so that the compiler unrolls the loop.
        if self.quotient_max <= u64::MAX / RARE_FROM {
            words.extend(chunks.iter().map(|chunk| where_few(chunk, &divides)));
        } else {
            words.extend(chunks.iter().map(|chunk| where_many(chunk, &divides)));
        }
        if !rest.is_empty() {
            words.push(bits(rest, &divides));
        }
        words
    }
}

/// The bits of 64 numbers of which many may pass: in four parts, since each bit waits for the one
/// before it in its part.
#[inline(always)]
fn where_many(numbers: &[i64; 64], test: impl Fn(i64) -> bool) -> u64 {
    let mut parts = [0_u64; 4];
    for turn in (0..16).rev() {
        for (part, bits) in parts.iter_mut().enumerate() {
            *bits = *bits + *bits + u64::from(test(numbers[16 * part + turn]));
        }
    }
    parts[0] | parts[1] << 16 | parts[2] << 32 | parts[3] << 48
}

/// The bits of 64 numbers of which few pass: eight at a time are looked at for any that does,
/// which takes half the time that their bits take.
#[inline(always)]
fn where_few(numbers: &[i64; 64], test: impl Fn(i64) -> bool) -> u64 {
    let (eights, _) = numbers.as_chunks::<8>();
    let mut word = 0_u64;
    for (at, eight) in eights.iter().enumerate() {
        if eight.iter().fold(false, |any, n| any | test(*n)) {
            word |= bits(eight, &test) << (8 * at);
        }
    }
    word
}

/// The bits of at most 64 numbers: the last of them first, so that each is one addition.
#[inline(always)]
fn bits(numbers: &[i64], test: impl Fn(i64) -> bool) -> u64 {
    let numbers = numbers.iter().rev();
    numbers.fold(0, |bits, n| bits + bits + u64::from(test(*n)))
}

/// The operand and the divisor of `operand % constant = 0`, and whether it is `<> 0`; `None`
/// where a comparison says something else.
pub(super) fn recognise(
    op: CompareOp,
    left: &Bound,
    right: &Bound,
) -> Option<(Bound, Divisor, bool)> {
    let negated = match op {
        CompareOp::Equal => false,
        CompareOp::NotEqual => true,
        _ => return None,
    };
    let BoundKind::Arithmetic {
        op: ArithmeticOp::Remainder,
        left: operand,
        right: constant,
    } = &left.kind
    else {
        return None;
    };
    if operand.data_type != DataType::Int64 || int64(right)? != 0 {
        return None;
    }
    let divisor = Divisor::new(int64(constant)?)?;
    Some(((**operand).clone(), divisor, negated))
}

fn int64(bound: &Bound) -> Option<i64> {
    let BoundKind::Literal(value, _) = &bound.kind else {
        return None;
    };
    let value = value.as_primitive_opt::<Int64Type>()?;
    value.is_valid(0).then(|| value.value(0))
}

/// The inverse modulo 2^64, by Newton's iteration, which doubles the bits that are right: an
/// odd number is its own inverse in the lowest three.
fn inverse_of_odd(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn it_says_what_the_remainder_says() {
        let constants = [
            2,
            3,
            4,
            5,
            6,
            7,
            10,
            12,
            123,
            128,
            1_000_003,
            1 << 40,
            i64::MAX,
        ];
        let near = |n: i64| (-3..=3).map(move |d| n.wrapping_add(d));
        for constant in constants {
            let divisor = Divisor::new(constant).unwrap();
            let multiples = [
                0,
                constant,
                -constant,
                constant.wrapping_mul(7),
                i64::MAX,
                i64::MIN,
            ];
            let values = multiples.into_iter().flat_map(near).chain(-200..200);
            let values: Vec<i64> = values.collect();
            let bits = divisor.test(&Int64Array::from(values.clone()), false);
            let others = divisor.test(&Int64Array::from(values.clone()), true);
            for (row, value) in values.into_iter().enumerate() {
                let expected = value.wrapping_rem(constant) == 0;
                assert_eq!(divisor.divides(value), expected, "{value} % {constant}");
                assert_eq!(bits.value(row), expected, "{value} % {constant}");
                assert_eq!(others.value(row), !expected, "{value} % {constant}");
            }
        }
    }

    #[test]
    fn zero_one_and_negative_constants_are_left_to_the_remainder() {
        for constant in [0, 1, -1, -2, i64::MIN] {
            assert_eq!(Divisor::new(constant), None);
        }
    }
}
