//! Table lineitem of TPC-H, as batches.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItem, LineItemGenerator};
use tpchgen::text::TextPool;

use crate::error::BenchError;

/// Of the whole table at scale 1 there are six million rows; a few thousand are taken.
const SCALE: f64 = 0.1;

/// Bytes of the text that comments are cut from: the generator's own 300 MiB take a while.
const TEXT_BYTES: i32 = 4 << 20;

/// Digits of a decimal, and those behind the point.
const PRECISION: u8 = 15;
const DIGITS_BEHIND: i8 = 2;

const MS_PER_DAY: i64 = 86_400_000;

/// The first rows of the table, with the day of shipping as the event time.
///
/// # Errors
/// When the columns make no batch.
pub(super) fn batches(count: usize, rows: usize) -> Result<Vec<RecordBatch>, BenchError> {
    let distributions = Distributions::static_default();
    let text = TextPool::new(TEXT_BYTES, distributions);
    let (part, parts) = (1, 1);
    let table = LineItemGenerator::new_with_distributions_and_text_pool(
        SCALE,
        part,
        parts,
        distributions,
        &text,
    );
    let mut table = table.iter();
    (0..count)
        .map(|_| batch(&table.by_ref().take(rows).collect::<Vec<_>>()))
        .collect()
}

fn batch(rows: &[LineItem<'_>]) -> Result<RecordBatch, BenchError> {
    let ints = |of: fn(&LineItem<'_>) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let decimals = |of: fn(&LineItem<'_>) -> TPCHDecimal| -> Result<ArrayRef, BenchError> {
        let values = rows.iter().map(|row| i128::from(of(row).0));
        let values = Decimal128Array::from_iter_values(values);
        let values = values.with_precision_and_scale(PRECISION, DIGITS_BEHIND)?;
        Ok(Arc::new(values))
    };
    let dates = |of: fn(&LineItem<'_>) -> TPCHDate| -> ArrayRef {
        let days = rows.iter().map(|row| of(row).to_unix_epoch());
        Arc::new(Date32Array::from_iter_values(days))
    };
    let texts = |of: for<'a> fn(&'a LineItem<'_>) -> &'a str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let numbers = rows.iter().map(|row| row.l_linenumber);
    let columns = [
        (
            "event_time",
            ints(|row| i64::from(row.l_shipdate.to_unix_epoch()) * MS_PER_DAY),
        ),
        ("l_orderkey", ints(|row| row.l_orderkey)),
        ("l_partkey", ints(|row| row.l_partkey)),
        ("l_suppkey", ints(|row| row.l_suppkey)),
        (
            "l_linenumber",
            Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef,
        ),
        ("l_quantity", ints(|row| row.l_quantity)),
        ("l_extendedprice", decimals(|row| row.l_extendedprice)?),
        ("l_discount", decimals(|row| row.l_discount)?),
        ("l_tax", decimals(|row| row.l_tax)?),
        ("l_returnflag", texts(|row| row.l_returnflag)),
        ("l_linestatus", texts(|row| row.l_linestatus)),
        ("l_shipdate", dates(|row| row.l_shipdate)),
        ("l_commitdate", dates(|row| row.l_commitdate)),
        ("l_receiptdate", dates(|row| row.l_receiptdate)),
        ("l_shipinstruct", texts(|row| row.l_shipinstruct)),
        ("l_shipmode", texts(|row| row.l_shipmode)),
        ("l_comment", texts(|row| row.l_comment)),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}
