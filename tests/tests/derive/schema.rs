//! The columns of a struct, field by field.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};
use ringway::batcher::{Batchable, choose_batcher};

use crate::structs::{Everything, Many, Optional, Trade};

fn fields_of<T: Batchable>() -> Fields {
    choose_batcher::<T>(None).schema().fields().clone()
}

fn field(name: &str, data_type: DataType, nullable: bool) -> Field {
    Field::new(name, data_type, nullable)
}

fn list(item: DataType, nullable: bool) -> DataType {
    DataType::List(Arc::new(field("item", item, nullable)))
}

fn map(key: DataType, value: DataType) -> DataType {
    let entry = [field("key", key, false), field("value", value, true)];
    let entries = DataType::Struct(Fields::from(entry.to_vec()));
    DataType::Map(Arc::new(field("entries", entries, false)), false)
}

fn assert_columns(found: &Fields, expected: &[Field]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(**found, *expected);
        assert!(found.metadata().is_empty());
    }
}

/// The columns that options and containers have, of whatever struct they are fields.
fn optional() -> Vec<Field> {
    vec![
        field("number", DataType::UInt16, true),
        field("real", DataType::Float32, true),
        field("flag", DataType::Boolean, true),
        field("text", DataType::Utf8, true),
        field("list", list(DataType::Utf8, false), true),
        field("map", map(DataType::UInt8, DataType::Boolean), true),
    ]
}

fn many() -> Vec<Field> {
    let structs = DataType::Struct(optional().into());
    let lists = list(list(DataType::Utf8, false), false);
    let of_lists = map(DataType::Boolean, list(DataType::UInt8, true));
    vec![
        field("numbers", list(DataType::Int32, false), false),
        field("flags", list(DataType::Boolean, false), false),
        field("holes", list(DataType::Int64, true), false),
        field("lists", lists, false),
        field("structs", list(structs, true), false),
        field("by_text", map(DataType::Utf8, DataType::Int64), false),
        field("by_number", map(DataType::Int64, DataType::Utf8), false),
        field("of_lists", of_lists, false),
    ]
}

#[test]
fn every_field_type_has_the_column_of_the_table() {
    let event_time = field("event_time", DataType::Int64, true);
    let expected = [
        event_time.clone(),
        field("i8", DataType::Int8, false),
        field("i16", DataType::Int16, false),
        field("i32", DataType::Int32, false),
        field("i64", DataType::Int64, false),
        field("u8", DataType::UInt8, false),
        field("u16", DataType::UInt16, false),
        field("u32", DataType::UInt32, false),
        field("u64", DataType::UInt64, false),
        field("f32", DataType::Float32, false),
        field("f64", DataType::Float64, false),
        field("bool", DataType::Boolean, false),
        field("text", DataType::Utf8, false),
        field("optional", DataType::Struct(optional().into()), false),
        field("many", DataType::Struct(many().into()), false),
        field("nested", DataType::Struct(many().into()), true),
    ];
    assert_columns(&fields_of::<Everything>(), &expected);

    // A struct has the same columns at the top as it has within another one.
    let columns = [vec![event_time.clone()], optional()].concat();
    assert_columns(&fields_of::<Optional>(), &columns);
    let columns = [vec![event_time], many()].concat();
    assert_columns(&fields_of::<Many>(), &columns);
}

#[test]
fn a_field_is_renamed_by_its_attribute() {
    let names = fields_of::<Trade>();
    let names: Vec<&str> = names.iter().map(|field| field.name().as_str()).collect();
    let expected = [
        "event_time",
        "id",
        "symbol",
        "price",
        "live",
        "type",
        "legs",
    ];
    assert_eq!(names, expected);
}
