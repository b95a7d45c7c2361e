//! Aggregates over every type of column.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array,
    Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema};

use super::{Accumulators, AggregateKind, AggregateSpec};
use crate::operators::SpecError;

/// The aggregate of `column` in one slot, with the filter if there is one.
fn aggregate(
    kind: AggregateKind,
    column: ArrayRef,
    filter: Option<BooleanArray>,
) -> Result<ArrayRef, SpecError> {
    let mut fields = vec![Field::new("value", column.data_type().clone(), true)];
    let mut spec = AggregateSpec::of(kind, 0, "out");
    let rows = column.len();
    let mut columns = vec![column];
    if let Some(filter) = filter {
        fields.push(Field::new("filter", DataType::Boolean, true));
        columns.push(Arc::new(filter));
        spec = spec.filtered_by(1);
    }
    let schema = Arc::new(Schema::new(fields));
    let mut accumulators = Accumulators::new(&schema, &[spec])?;
    accumulators.resize(2);
    let batch = RecordBatch::try_new(schema, columns).expect("columns and schema agree");
    accumulators
        .update(&batch, &vec![1; rows])
        .expect("values fit");
    let mut merged = accumulators.empty_like();
    merged.resize(1);
    merged.merge(&[0, 0], &accumulators, &[0, 1]);
    let direct = accumulators.finish(&[1]).expect("results").remove(0);
    let merged = merged.finish(&[0]).expect("results").remove(0);
    assert_eq!(&direct, &merged, "merged with an empty slot");
    assert!(
        kind == AggregateKind::CountColumn
            || accumulators.finish(&[0]).expect("results")[0].is_null(0),
        "null without a value"
    );
    Ok(direct)
}

fn plain(kind: AggregateKind, column: impl Array + 'static) -> ArrayRef {
    aggregate(kind, Arc::new(column), None).expect("a fitting type")
}

#[test]
fn nulls_are_left_out_and_filters_apply() {
    use AggregateKind::{CountColumn, Max, Mean, Min, Sum};
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(4), None, Some(-2), Some(100)]));
    let filter = BooleanArray::from(vec![Some(true), Some(true), Some(true), None]);
    let run = |kind| aggregate(kind, column.clone(), Some(filter.clone())).expect("int64");
    let int = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    assert_eq!(&run(CountColumn), &int(2));
    assert_eq!(&run(Sum), &int(2));
    assert_eq!(&run(Min), &int(-2));
    assert_eq!(&run(Max), &int(4));
    assert_eq!(
        run(Mean)
            .as_primitive::<arrow::datatypes::Float64Type>()
            .value(0),
        1.0
    );
}

#[test]
fn least_and_greatest_keep_the_type_of_the_column() {
    use AggregateKind::{Max, Min};
    let small = Int8Array::from(vec![5, -7]);
    assert_eq!(
        plain(Min, small).as_ref(),
        &Int8Array::from(vec![-7]) as &dyn Array
    );
    let large = UInt64Array::from(vec![u64::MAX, 1]);
    assert_eq!(
        plain(Max, large).as_ref(),
        &UInt64Array::from(vec![u64::MAX]) as &dyn Array
    );
    let dates = Date32Array::from(vec![-9, 3]);
    assert_eq!(
        plain(Max, dates).as_ref(),
        &Date32Array::from(vec![3]) as &dyn Array
    );
    let times = TimestampMicrosecondArray::from(vec![7, 8]).with_timezone("+01:00");
    let least = TimestampMicrosecondArray::from(vec![7]).with_timezone("+01:00");
    assert_eq!(plain(Min, times).as_ref(), &least as &dyn Array);
    let views = StringViewArray::from(vec!["b", "a"]);
    assert_eq!(
        plain(Min, views).as_ref(),
        &StringViewArray::from(vec!["a"]) as &dyn Array
    );
    let booleans = BooleanArray::from(vec![false, true]);
    assert_eq!(
        plain(Max, booleans).as_ref(),
        &BooleanArray::from(vec![true]) as &dyn Array
    );
    let floats = Float32Array::from(vec![1.5, f32::NEG_INFINITY]);
    let least = Float32Array::from(vec![f32::NEG_INFINITY]);
    assert_eq!(plain(Min, floats).as_ref(), &least as &dyn Array);
}

#[test]
fn not_a_number_is_the_greatest_float() {
    let floats = || Float64Array::from(vec![f64::NAN, 1.0, f64::INFINITY]);
    let of = |kind| {
        plain(kind, floats())
            .as_primitive::<arrow::datatypes::Float64Type>()
            .value(0)
    };
    assert!(of(AggregateKind::Max).is_nan());
    assert_eq!(of(AggregateKind::Min), 1.0);
}

#[test]
fn sums_have_the_widest_type_of_their_kind() {
    use AggregateKind::Sum;
    let small = plain(Sum, Int8Array::from(vec![100, 100]));
    assert_eq!(small.as_ref(), &Int64Array::from(vec![200]) as &dyn Array);
    let unsigned = plain(Sum, UInt64Array::from(vec![u64::MAX - 1, 1]));
    assert_eq!(
        unsigned.as_ref(),
        &UInt64Array::from(vec![u64::MAX]) as &dyn Array
    );
    let floats = plain(Sum, Float32Array::from(vec![0.5, 0.25]));
    assert_eq!(
        floats.as_ref(),
        &Float64Array::from(vec![0.75]) as &dyn Array
    );
}

#[test]
fn a_mean_of_integers_is_exact_where_their_sum_overflows() {
    let mean = plain(AggregateKind::Mean, Int64Array::from(vec![i64::MAX; 4]));
    assert_eq!(
        mean.as_ref(),
        &Float64Array::from(vec![i64::MAX as f64]) as &dyn Array
    );
}

#[test]
fn texts_and_dates_have_no_sum() {
    let refused = |column: ArrayRef| aggregate(AggregateKind::Sum, column, None).is_err();
    assert!(refused(Arc::new(StringViewArray::from(vec!["a"]))));
    assert!(refused(Arc::new(Date32Array::from(vec![1]))));
    assert!(refused(Arc::new(BooleanArray::from(vec![true]))));
}

#[test]
fn slots_that_are_emptied_start_again() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![5, 6]));
    let schema = Arc::new(Schema::new(vec![Field::new(
        "value",
        DataType::Int64,
        true,
    )]));
    use AggregateKind::{Max, Mean, Sum};
    let specs = [Sum, Mean, Max].map(|kind| AggregateSpec::of(kind, 0, "out"));
    let mut accumulators = Accumulators::new(&schema, &specs).expect("int64");
    let batch = RecordBatch::try_new(schema, vec![column]).expect("columns and schema agree");
    accumulators.resize(2);
    accumulators.update(&batch, &[0, 1]).expect("values fit");
    let first = accumulators.finish(&[0, 1]).expect("results");
    accumulators.clear(&[0]);
    assert!(
        accumulators
            .finish(&[0])
            .expect("results")
            .iter()
            .all(|out| out.is_null(0))
    );
    accumulators.clear(&[1]);
    accumulators.update(&batch, &[1, 0]).expect("values fit");
    let swapped = accumulators.finish(&[1, 0]).expect("results");
    for (first, swapped) in first.iter().zip(&swapped) {
        assert_eq!(first, swapped);
    }
}
