//! What a columnar join is asked for, and the columns that it gives.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};

use crate::batch::EVENT_TIME_COLUMN;
use crate::operator::SideTag;
use crate::operators::SpecError;
use crate::operators::schema::{int64_field, require_event_time, window_fields};

use super::kind::JoinKind;
use super::time::JoinTime;

/// What a [`Join`](super::Join) does.
#[derive(Clone, Debug)]
pub struct JoinSpec {
    /// Which rows it gives.
    pub kind: JoinKind,
    /// When rows match.
    pub time: JoinTime,
    /// The positions of the key columns of the left side; one at least.
    pub left_keys: Vec<usize>,
    /// Those of the right side, as many and of the same types.
    pub right_keys: Vec<usize>,
    /// Where left rows go that come too late, or have no event time. Without it they are
    /// counted only.
    pub left_late: Option<SideTag<RecordBatch>>,
    /// The same for right rows.
    pub right_late: Option<SideTag<RecordBatch>>,
}

impl JoinSpec {
    /// The schema of the results over batches of `left` and `right`.
    ///
    /// # Errors
    /// When an input has no event time, or the key columns do not exist or do not fit.
    pub fn output_schema(
        &self,
        left: &SchemaRef,
        right: &SchemaRef,
    ) -> Result<SchemaRef, SpecError> {
        require_event_time(left)?;
        require_event_time(right)?;
        self.key_schema(left, right)?;
        let windows = matches!(self.time, JoinTime::SameWindow(_));
        let mut fields = match windows {
            true => window_fields().to_vec(),
            false => vec![int64_field(EVENT_TIME_COLUMN, true)],
        };
        let mut metadata = right.metadata().clone();
        match self.kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti if !windows => return Ok(Arc::clone(left)),
            JoinKind::RightSemi | JoinKind::RightAnti if !windows => return Ok(Arc::clone(right)),
            JoinKind::LeftSemi | JoinKind::LeftAnti => {
                fields.extend(left.fields().iter().cloned());
                metadata = left.metadata().clone();
            }
            JoinKind::RightSemi | JoinKind::RightAnti => {
                fields.extend(right.fields().iter().cloned());
            }
            kind => {
                let left_absent = kind.right_alone().unmatched;
                let right_absent = kind.left_alone().unmatched;
                fields.extend(left.fields().iter().map(|of| or_null(of, left_absent)));
                fields.extend(right.fields().iter().map(|of| or_null(of, right_absent)));
                metadata.extend(left.metadata().clone());
            }
        }
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    /// The columns of the results that are those of the left input, and those of the right one.
    ///
    /// # Panics
    /// When the join does not fit the schemas: see [`JoinSpec::output_schema`].
    pub fn columns_of_inputs(
        &self,
        left: &SchemaRef,
        right: &SchemaRef,
    ) -> (Range<usize>, Range<usize>) {
        let columns = self.output_schema(left, right).expect("a fitting join");
        let end = columns.fields().len();
        let right_columns = match self.kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti => 0,
            _ => right.fields().len(),
        };
        let left_columns = match self.kind {
            JoinKind::RightSemi | JoinKind::RightAnti => 0,
            _ => left.fields().len(),
        };
        let right_first = end - right_columns;
        (right_first - left_columns..right_first, right_first..end)
    }

    /// The key columns of either side, as a schema of their own.
    pub(super) fn key_schema(
        &self,
        left: &SchemaRef,
        right: &SchemaRef,
    ) -> Result<SchemaRef, SpecError> {
        let (lefts, rights) = (&self.left_keys, &self.right_keys);
        if lefts.is_empty() || lefts.len() != rights.len() {
            return Err(SpecError::JoinKeys {
                left: lefts.len(),
                right: rights.len(),
            });
        }
        let mut fields = Vec::new();
        for (&left_column, &right_column) in lefts.iter().zip(rights) {
            let of_left = key_field("the left key", left, left_column)?;
            let of_right = key_field("the right key", right, right_column)?;
            if of_left.data_type() != of_right.data_type() {
                return Err(SpecError::JoinKeyTypes {
                    left_column,
                    left: of_left.data_type().clone(),
                    right_column,
                    right: of_right.data_type().clone(),
                });
            }
            fields.push(or_null(of_left, true));
        }
        Ok(Arc::new(Schema::new(fields)))
    }
}

fn key_field<'a>(what: &str, schema: &'a Schema, column: usize) -> Result<&'a FieldRef, SpecError> {
    schema
        .fields()
        .get(column)
        .ok_or_else(|| SpecError::NoColumn {
            what: what.to_owned(),
            column,
            columns: schema.fields().len(),
        })
}

fn or_null(field: &FieldRef, nullable: bool) -> FieldRef {
    if !nullable || field.is_nullable() {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_nullable(true))
}
