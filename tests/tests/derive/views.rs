//! Rows and columns read where they lie.

use arrow::array::Array;
use ringway::batch::{Row, Rows};
use ringway::batcher::{View, choose_batcher, view};

use crate::structs::{Leg, Many, Trade, TradeRef, TradeView};

fn trades() -> Rows<Trade> {
    let trade = |id: i64| Trade {
        id,
        symbol: format!("S{id}"),
        price: id as f64 / 2.0,
        live: id % 2 == 0,
        kind: (id % 2 == 1).then(|| "limit".to_string()),
        legs: (0..id)
            .map(|leg| Leg {
                venue: format!("V{leg}"),
                quantity: (leg > 0).then_some(leg as i32),
            })
            .collect(),
    };
    (0..4).map(|id| Row::at(1_000 + id, trade(id))).collect()
}

/// An operator that names the derived types.
fn dearest<'a>(view: &TradeView<'a>) -> Option<TradeRef<'a>> {
    let rows = (0..view.len()).map(|row| view.get(row));
    rows.max_by(|a, b| a.price.total_cmp(&b.price))
}

#[test]
fn a_row_and_its_columns_are_read_without_owning_them() {
    let batch = choose_batcher(None).build(&trades()).unwrap();
    let view = view::<Trade>(&batch).unwrap();
    let dearest = dearest(&view).unwrap();
    assert_eq!((dearest.id, dearest.symbol, dearest.live), (3, "S3", false));
    assert_eq!(dearest.kind, Some("limit"));
    let legs: Vec<_> = dearest.legs.iter().map(|leg| leg.quantity).collect();
    assert_eq!(legs, [None, Some(1), Some(2)]);
    assert_eq!(dearest.legs.get(1).map(|leg| leg.venue), Some("V1"));
    assert_eq!(dearest.legs.get(3), None);

    let columns = view.columns();
    assert_eq!(columns.price.iter().sum::<f64>(), 3.0);
    assert_eq!(columns.kind.nulls().unwrap().null_count(), 2);
    assert_eq!(columns.legs.items().venue.len(), 6);
    let shown = format!("{view:?}");
    assert!(
        shown.contains("TradeRef { id: 3, symbol: \"S3\""),
        "{shown}"
    );
}

#[test]
fn a_view_of_a_slice_sees_the_slice() {
    let batch = choose_batcher(None).build(&trades()).unwrap();
    let slice = batch.slice(2, 1);
    let view = view::<Trade>(&slice).unwrap();
    assert_eq!(view.len(), 1);
    assert_eq!((view.event_time(0), view.get(0).id), (Some(1_002), 2));
    assert_eq!(view.get(0).legs.len(), 2);
    assert_eq!(view.columns().id, [2]);
}

#[test]
fn a_map_is_looked_into_by_key() {
    let many = Many {
        by_text: [("b".into(), 2), ("a".into(), 1)].into(),
        by_number: [(1, None), (2, Some("two".into()))].into(),
        ..Many::default()
    };
    let rows = Rows::from(vec![Row::untimed(many)]);
    let batch = choose_batcher(None).build(&rows).unwrap();
    let row = view::<Many>(&batch).unwrap().get(0);
    assert_eq!(
        (row.by_text.get("a"), row.by_text.get("c")),
        (Some(1), None)
    );
    assert_eq!(row.by_number.get(1), Some(None));
    assert_eq!(row.by_number.get(2), Some(Some("two")));
    assert!(row.of_lists.is_empty() && row.structs.is_empty());
    let entries: Vec<_> = row.by_text.iter().collect();
    assert_eq!(entries, [("a", 1), ("b", 2)]);
}
