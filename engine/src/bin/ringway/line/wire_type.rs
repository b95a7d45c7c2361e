//! The types of stream that the wire's tools know by name.

use clap::ValueEnum;

use arrow::datatypes::SchemaRef;
use ringway::batcher::{Batchable, Batcher, BinaryBatcher, choose_batcher};
use ringway::wire::Columns;

/// What the batches of a stream hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WireType {
    /// `value` int64
    Int64,
    /// `value` int32
    Int32,
    /// `value` uint32
    Uint32,
    /// `value` uint64
    Uint64,
    /// `value` utf8
    String,
    /// `key` int64, `value` int64
    Int64Keyed,
    /// `key` utf8, `value` int64
    StringKeyed,
    /// `value_bytes` binary
    Binary,
    /// Any schema, with or without an event time
    Arrow,
}

impl WireType {
    /// The one schema of its batches; none where every schema is right.
    pub(crate) fn schema(self) -> Option<SchemaRef> {
        Some(match self {
            Self::Int64 => schema_of::<i64>(),
            Self::Int32 => schema_of::<i32>(),
            Self::Uint32 => schema_of::<u32>(),
            Self::Uint64 => schema_of::<u64>(),
            Self::String => schema_of::<String>(),
            Self::Int64Keyed => schema_of::<(i64, i64)>(),
            Self::StringKeyed => schema_of::<(String, i64)>(),
            Self::Binary => BinaryBatcher::<Vec<u8>>::plain().schema(),
            Self::Arrow => return None,
        })
    }

    /// Its batches, as an edge carries them.
    pub(crate) fn columns(self) -> Columns {
        self.schema().map_or_else(Columns::any, Columns::of)
    }
}

fn schema_of<T: Batchable>() -> SchemaRef {
    choose_batcher::<T>(None).schema()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_but_arrow_has_a_schema_that_begins_with_the_event_time() {
        for wire_type in WireType::value_variants() {
            match wire_type.schema() {
                Some(schema) => {
                    let first = schema.field(0);
                    assert_eq!(
                        (first.name().as_str(), first.is_nullable()),
                        ("event_time", true)
                    );
                }
                None => assert_eq!(*wire_type, WireType::Arrow),
            }
        }
    }

    #[test]
    fn types_are_named_as_on_the_wire() {
        let names = WireType::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value);
        let names: Vec<_> = names.map(|value| value.get_name().to_owned()).collect();
        let expected = [
            "int64",
            "int32",
            "uint32",
            "uint64",
            "string",
            "int64-keyed",
            "string-keyed",
            "binary",
            "arrow",
        ];
        assert_eq!(names, expected);
    }
}
