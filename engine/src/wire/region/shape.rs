//! Which schemas have the flat form, and what their batches consist of.

use arrow::datatypes::{DataType, Schema};

use crate::limits::NESTING_MAX;

/// What every batch of a schema in the flat form consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Columns at any depth.
    pub(super) nodes: usize,
    /// Buffers, those behind views not counted: each batch has its own number of these.
    pub(super) buffers: usize,
    /// Columns of views at any depth.
    pub(super) views: usize,
}

impl Shape {
    /// That of a schema; none where one of its types has no flat form.
    pub(super) fn of(schema: &Schema) -> Option<Self> {
        let mut shape = Self::default();
        for field in schema.fields() {
            shape.add(field.data_type(), 0)?;
        }
        Some(shape)
    }

    fn add(&mut self, data_type: &DataType, depth: usize) -> Option<()> {
        if depth >= NESTING_MAX {
            return None;
        }
        self.nodes += 1;
        match data_type {
            DataType::Null => {}
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                self.buffers += 3;
            }
            DataType::Utf8View | DataType::BinaryView => {
                self.buffers += 2;
                self.views += 1;
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                self.buffers += 2;
                self.add(item.data_type(), depth + 1)?;
            }
            // Lists and values of nothing don't say by their contents how many they are.
            DataType::FixedSizeList(item, 1..) => {
                self.buffers += 1;
                self.add(item.data_type(), depth + 1)?;
            }
            DataType::Struct(fields) => {
                self.buffers += 1;
                for field in fields {
                    self.add(field.data_type(), depth + 1)?;
                }
            }
            DataType::Boolean | DataType::FixedSizeBinary(1..) => self.buffers += 2,
            other if other.is_primitive() => self.buffers += 2,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn nodes_and_buffers_are_counted_at_any_depth() {
        let views = Field::new("item", DataType::Utf8View, true);
        let record = DataType::Struct(vec![views, Field::new("n", DataType::Int8, true)].into());
        let schema = Schema::new(vec![
            Field::new("nothing", DataType::Null, true),
            Field::new("text", DataType::Utf8, true),
            Field::new_list("list", Field::new("item", record, true), true),
        ]);
        let expected = Shape {
            nodes: 6,
            buffers: 3 + 2 + 1 + 2 + 2,
            views: 1,
        };
        assert_eq!(Shape::of(&schema), Some(expected));
        assert_eq!(Shape::of(&Schema::empty()), Some(Shape::default()));
    }

    #[test]
    fn dictionaries_and_their_like_have_no_flat_form_wherever_they_are() {
        let key = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let item = Field::new("item", key, true);
        let schema = Schema::new(vec![Field::new_list("list", item, true)]);
        assert_eq!(Shape::of(&schema), None);
        for width in [DataType::FixedSizeBinary(0), DataType::FixedSizeBinary(-1)] {
            assert_eq!(
                Shape::of(&Schema::new(vec![Field::new("", width, true)])),
                None
            );
        }
    }
}
