//! Expressions over the columns of a batch.

use std::hint::black_box;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use gungraun::prelude::*;
use ringway::column::filter_batch;
use ringway::expr::{BoundExpr, Expr};

use crate::rows::batch;

fn bound(text: &str) -> (BoundExpr, RecordBatch) {
    let batch = batch(1024);
    let expression = Expr::parse(text).expect("it is well formed");
    let bound = expression.bind(&batch.schema());
    (bound.expect("its columns are there"), batch)
}

#[library_benchmark]
#[bench::two_comparisons(bound("key > 50 and measure < 64.0"))]
pub(crate) fn filter(
    (predicate, batch): (BoundExpr, RecordBatch),
) -> (BoundExpr, RecordBatch, RecordBatch) {
    let mask = predicate.evaluate_predicate(black_box(&batch));
    let kept = filter_batch(&batch, &mask.expect("it was bound to this schema"));
    let kept = kept.expect("the mask has a bit for each row");
    (predicate, batch, kept)
}

fn text() -> (&'static str, SchemaRef) {
    let text = "key > 50 and measure * 2.0 < 64.0 and text = 'row 3'";
    (text, batch(1).schema())
}

#[library_benchmark]
#[bench::of_three_columns(text())]
pub(crate) fn parse_and_bind((text, schema): (&str, SchemaRef)) -> (BoundExpr, SchemaRef) {
    let expression = Expr::parse(black_box(text)).expect("it is well formed");
    let bound = expression.bind(&schema);
    (bound.expect("its columns are there"), schema)
}
