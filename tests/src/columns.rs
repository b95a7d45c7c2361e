//! A column of every type, with nulls where the type has them.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;

/// Rows of every column.
pub const ROWS: usize = 12;

/// Row 2, 5, 8, ... is null.
fn nullable<T>(value: impl Fn(usize) -> T) -> impl Iterator<Item = Option<T>> {
    (0..ROWS).map(move |row| (row % 3 != 2).then(|| value(row)))
}

fn text(row: usize) -> String {
    // Short ones and some that no view holds inline.
    format!("{row}{}", "x".repeat(row * 3))
}

fn of<T: ArrowPrimitiveType>(value: impl Fn(usize) -> T::Native) -> PrimitiveArray<T> {
    PrimitiveArray::from_iter(nullable(value))
}

/// Every column with its name.
pub fn columns() -> Vec<(String, ArrayRef)> {
    let mut columns = numbers();
    columns.extend(times());
    columns.extend(bytes());
    columns.extend(encoded());
    columns.extend(nested());
    columns
        .into_iter()
        .map(|column| (column.data_type().to_string(), column))
        .collect()
}

fn numbers() -> Vec<ArrayRef> {
    vec![
        Arc::new(NullArray::new(ROWS)),
        Arc::new(nullable(|row| row % 2 == 0).collect::<BooleanArray>()),
        Arc::new(of::<Int8Type>(|row| row as i8)),
        Arc::new(of::<UInt64Type>(|row| u64::MAX - row as u64)),
        Arc::new(of::<Float16Type>(half)),
        Arc::new(of::<Float64Type>(|row| 0.1 * row as f64)),
        Arc::new(
            of::<Decimal32Type>(|row| row as i32)
                .with_precision_and_scale(5, 2)
                .unwrap(),
        ),
        Arc::new(
            of::<Decimal64Type>(|row| row as i64)
                .with_precision_and_scale(15, -1)
                .unwrap(),
        ),
        Arc::new(
            of::<Decimal128Type>(|row| row as i128)
                .with_precision_and_scale(30, 7)
                .unwrap(),
        ),
        Arc::new(
            of::<Decimal256Type>(|row| i256::from_i128(row as i128))
                .with_precision_and_scale(60, 3)
                .unwrap(),
        ),
    ]
}

fn half(row: usize) -> <Float16Type as ArrowPrimitiveType>::Native {
    <Float16Type as ArrowPrimitiveType>::Native::from_f32(row as f32)
}

fn times() -> Vec<ArrayRef> {
    vec![
        Arc::new(of::<Date32Type>(|row| row as i32)),
        Arc::new(of::<Date64Type>(|row| 86_400_000 * row as i64)),
        Arc::new(of::<Time32SecondType>(|row| row as i32)),
        Arc::new(of::<Time64NanosecondType>(|row| row as i64)),
        Arc::new(of::<TimestampMicrosecondType>(|row| row as i64).with_timezone("+02:00")),
        Arc::new(of::<DurationMillisecondType>(|row| row as i64)),
        Arc::new(of::<IntervalYearMonthType>(|row| row as i32)),
        Arc::new(of::<IntervalDayTimeType>(|row| {
            IntervalDayTime::new(row as i32, 1)
        })),
        Arc::new(of::<IntervalMonthDayNanoType>(|row| {
            IntervalMonthDayNano::new(row as i32, 1, 2)
        })),
    ]
}

fn bytes() -> Vec<ArrayRef> {
    vec![
        Arc::new(nullable(text).collect::<StringArray>()),
        Arc::new(nullable(text).collect::<LargeStringArray>()),
        Arc::new(nullable(text).collect::<StringViewArray>()),
        Arc::new(nullable(text).collect::<BinaryArray>()),
        Arc::new(nullable(text).collect::<LargeBinaryArray>()),
        Arc::new(nullable(text).collect::<BinaryViewArray>()),
        Arc::new(fixed_size()),
    ]
}

fn fixed_size() -> FixedSizeBinaryArray {
    let values = nullable(|row| [row as u8; 3]);
    FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 3).unwrap()
}

fn dictionary() -> DictionaryArray<Int8Type> {
    let keys = of::<Int8Type>(|row| (row % 4) as i8);
    // With a value that is null and one that no key has.
    let values = StringArray::from(vec![Some("a"), None, Some("c"), Some("a"), Some("unused")]);
    DictionaryArray::new(keys, Arc::new(values))
}

fn runs() -> RunArray<Int32Type> {
    let ends = Int32Array::from(vec![2, 4, 5, 9, ROWS as i32]);
    let values = StringArray::from(vec![Some("a"), None, Some("c"), Some("d"), Some("e")]);
    RunArray::try_new(&ends, &values).unwrap()
}

fn encoded() -> Vec<ArrayRef> {
    let decimals = of::<Decimal128Type>(|row| row as i128);
    let keys = UInt16Array::from_iter_values((0..ROWS as u16).map(|row| row % 5));
    vec![
        Arc::new(dictionary()),
        Arc::new(DictionaryArray::new(keys.clone(), Arc::new(decimals))),
        Arc::new(DictionaryArray::new(
            keys.clone(),
            Arc::new(of::<Int64Type>(|row| row as i64)),
        )),
        Arc::new(DictionaryArray::new(
            keys.clone(),
            Arc::new(of::<Float64Type>(|row| row as f64)),
        )),
        Arc::new(DictionaryArray::new(keys.clone(), Arc::new(fixed_size()))),
        Arc::new(DictionaryArray::new(
            keys.clone(),
            Arc::new(nullable(text).collect::<BinaryArray>()),
        )),
        Arc::new(DictionaryArray::new(
            keys,
            Arc::new(nullable(text).collect::<StringViewArray>()),
        )),
        Arc::new(runs()),
        Arc::new(
            RunArray::try_new(
                &Int16Array::from(vec![7, ROWS as i16]),
                &Int64Array::from(vec![None, Some(7)]),
            )
            .unwrap(),
        ),
    ]
}

/// Lists of 0, 1 or 2 items, none where the row is null.
fn offsets() -> (OffsetBuffer<i32>, NullBuffer) {
    let nulls = NullBuffer::from_iter((0..ROWS).map(|row| row % 4 != 3));
    let lengths = (0..ROWS).map(|row| if row % 4 == 3 { 0 } else { row % 3 });
    (OffsetBuffer::from_lengths(lengths), nulls)
}

/// A list of what `item` makes, which takes the number of items.
fn list(item: impl Fn(usize) -> ArrayRef) -> ArrayRef {
    let (offsets, nulls) = offsets();
    let items = item(*offsets.last().unwrap() as usize);
    let field = Field::new("item", items.data_type().clone(), true);
    Arc::new(ListArray::new(Arc::new(field), offsets, items, Some(nulls)))
}

fn views(rows: usize) -> ArrayRef {
    let texts = (0..rows).map(|row| (row % 3 != 1).then(|| text(row)));
    Arc::new(texts.collect::<StringViewArray>())
}

fn record() -> StructArray {
    let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let columns: Vec<ArrayRef> = vec![Arc::new(dictionary()), views(ROWS), Arc::new(runs())];
    let names = ["code", "code", "run"];
    let fields = names
        .iter()
        .zip(&columns)
        .map(|(name, array)| field(name, array));
    let nulls = NullBuffer::from_iter((0..ROWS).map(|row| row != 4));
    StructArray::new(fields.collect(), columns, Some(nulls))
}

fn map() -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in 0..ROWS {
        for entry in 0..row % 3 {
            builder.keys().append_value(text(entry));
            builder
                .values()
                .append_option((entry == 0).then_some(row as i64));
        }
        builder.append(row % 4 != 3).unwrap();
    }
    Arc::new(builder.finish())
}

fn union(mode: UnionMode) -> ArrayRef {
    let fields = UnionFields::try_new(
        [3, 7],
        [
            Field::new("number", DataType::Int64, true),
            Field::new("text", DataType::Utf8, true),
        ],
    )
    .unwrap();
    let ids: ScalarBuffer<i8> = (0..ROWS)
        .map(|row| if row % 3 == 0 { 7 } else { 3 })
        .collect();
    let (offsets, numbers, texts) = match mode {
        UnionMode::Sparse => (None, ROWS, ROWS),
        UnionMode::Dense => {
            let offsets = (0..ROWS).map(|row| {
                if row % 3 == 0 {
                    row / 3
                } else {
                    row - row / 3 - 1
                }
            });
            let offsets: ScalarBuffer<i32> = offsets.map(|offset| offset as i32).collect();
            (Some(offsets), ROWS - ROWS / 3, ROWS / 3)
        }
    };
    let numbers = (0..numbers).map(|row| (row != 1).then_some(row as i64));
    let children: Vec<ArrayRef> = vec![
        Arc::new(numbers.collect::<Int64Array>()),
        Arc::new(
            (0..texts)
                .map(|row| Some(text(row)))
                .collect::<StringArray>(),
        ),
    ];
    Arc::new(UnionArray::try_new(fields, ids, offsets, children).unwrap())
}

fn nested() -> Vec<ArrayRef> {
    let (offsets, nulls) = offsets();
    let items = views(*offsets.last().unwrap() as usize);
    let item = Arc::new(Field::new("item", DataType::Utf8View, true));
    let starts: ScalarBuffer<i32> = offsets[..ROWS].iter().copied().collect();
    let sizes: ScalarBuffer<i32> = offsets.lengths().map(|length| length as i32).collect();
    let large = OffsetBuffer::<i64>::from_lengths(offsets.lengths());
    let large_starts: ScalarBuffer<i64> = large[..ROWS].iter().copied().collect();
    let large_sizes: ScalarBuffer<i64> = large.lengths().map(|length| length as i64).collect();
    let (some, nulls) = (Arc::clone(&items), Some(nulls));
    vec![
        list(views),
        list(|items| Arc::new(dictionary().slice(0, items.min(ROWS)))),
        list(|items| Arc::new(record().slice(0, items))),
        list(|_| list(views)),
        Arc::new(LargeListArray::new(
            Arc::clone(&item),
            large,
            Arc::clone(&some),
            nulls.clone(),
        )),
        Arc::new(ListViewArray::new(
            Arc::clone(&item),
            starts,
            sizes,
            Arc::clone(&some),
            nulls.clone(),
        )),
        Arc::new(LargeListViewArray::new(
            Arc::clone(&item),
            large_starts,
            large_sizes,
            some,
            nulls.clone(),
        )),
        Arc::new(FixedSizeListArray::new(item, 2, views(2 * ROWS), nulls)),
        Arc::new(record()),
        map(),
        union(UnionMode::Sparse),
        union(UnionMode::Dense),
    ]
}
