//! How values are compared and summed.

use std::cmp::Ordering;

use crate::error::OperatorError;

/// A total order, by which least and greatest values are found.
///
/// Floats have the total order of IEEE 754: NaN (positive) is greater than all others, and
/// -0 less than 0.
pub trait Ordered {
    /// How this compares with `other`.
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! ordered_by_cmp {
    ($($of:ty),*) => {$(
        impl Ordered for $of {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}

ordered_by_cmp!(
    i8, i16, i32, i64, u8, u16, u32, u64, bool, char, str, String
);

impl Ordered for f32 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

impl Ordered for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }
}

/// A number that can be summed: integers exactly, floats as they do.
pub trait Summand: Copy + Send + 'static {
    /// What sums are kept in.
    type Total: Copy + Default + Send + 'static;

    /// Adds this number to `total`.
    fn add_to(self, total: &mut Self::Total);

    /// Adds `other` to `total`.
    fn merge(total: &mut Self::Total, other: Self::Total);

    /// The sum.
    ///
    /// # Errors
    /// When it does not fit the type: sum a wider one.
    fn sum(total: Self::Total) -> Result<Self, OperatorError>;

    /// The mean of `count` numbers, of which there is at least one.
    fn mean(total: Self::Total, count: u64) -> f64;
}

macro_rules! integer_summand {
    ($($of:ty),*) => {$(
        impl Summand for $of {
            type Total = i128;

            fn add_to(self, total: &mut i128) {
                *total += i128::from(self);
            }

            fn merge(total: &mut i128, other: i128) {
                *total += other;
            }

            fn sum(total: i128) -> Result<Self, OperatorError> {
                Self::try_from(total).map_err(|_| {
                    OperatorError::new(format!(
                        "a sum is {total}, which {} does not hold: sum a wider type, or use the mean",
                        stringify!($of)
                    ))
                })
            }

            fn mean(total: i128, count: u64) -> f64 {
                total as f64 / count as f64
            }
        }
    )*};
}

integer_summand!(i32, i64, u32, u64);

impl Summand for f64 {
    type Total = f64;

    fn add_to(self, total: &mut f64) {
        *total += self;
    }

    fn merge(total: &mut f64, other: f64) {
        *total += other;
    }

    fn sum(total: f64) -> Result<Self, OperatorError> {
        Ok(total)
    }

    fn mean(total: f64, count: u64) -> f64 {
        total / count as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_does_not_fit_is_an_error_and_one_that_fits_again_is_exact() {
        let mut total = 0;
        i32::MAX.add_to(&mut total);
        1_i32.add_to(&mut total);
        let error = i32::sum(total).expect_err("2^31");
        assert!(error.to_string().contains("2147483648"), "{error}");
        (-1_i32).add_to(&mut total);
        assert_eq!(i32::sum(total).expect("fits"), i32::MAX);
        assert_eq!(i32::mean(7, 2), 3.5);
    }
}
