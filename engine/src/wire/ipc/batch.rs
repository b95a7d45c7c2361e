//! Whether a batch has the nodes and buffers that its schema asks for.

use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, Field, IntervalUnit, UnionMode};
use arrow::ipc::{FieldNode, MetadataVersion, RecordBatch};

use crate::limits::{BATCH_ROWS_MAX, IPC_ITEMS_MAX};

use super::error::{IpcError, bounded};

/// Makes sure that `batch`, which is not compressed, lays out columns of `fields` in `body`:
/// exactly the nodes and buffers that are due, every buffer within the body, aligned to 8
/// bytes and long enough for its rows, and not more of them than the body has bytes: the library
/// copies those that are not aligned for their type, and many that lie in one place would become
/// any amount of memory. Of the contents only validity is looked at.
pub(super) fn check_batch<'f>(
    batch: RecordBatch<'_>,
    version: MetadataVersion,
    fields: impl Iterator<Item = &'f Field>,
    body: &Buffer,
) -> Result<(), IpcError> {
    let rows = bounded("rows of a batch", batch.length(), BATCH_ROWS_MAX)?;
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(IpcError::malformed("a batch without nodes or buffers"));
    };
    let bytes = buffers
        .iter()
        .map(|buffer| u64::try_from(buffer.length()).unwrap_or(0));
    let bytes = bytes.fold(0, u64::saturating_add);
    if bytes > body.len() as u64 {
        let body = body.len();
        return Err(IpcError::malformed(format_args!(
            "buffers of {bytes} bytes in a body of {body}"
        )));
    }
    let mut walk = Walk {
        nodes: nodes.iter(),
        buffers: buffers.iter(),
        view_buffers: batch.variadicBufferCounts().into_iter().flatten(),
        version,
        body,
    };
    for field in fields {
        let length = walk.column(field)?;
        if length != rows {
            return Err(of_field(
                field,
                format_args!("{length} rows in a batch of {rows}"),
            ));
        }
    }
    if walk.nodes.next().is_some() {
        return Err(IpcError::malformed("a batch with nodes of no field"));
    }
    if walk.buffers.next().is_some() {
        return Err(IpcError::malformed("a batch with buffers of no field"));
    }
    if walk.view_buffers.next().is_some() {
        return Err(IpcError::malformed("a batch with buffers of no view"));
    }
    Ok(())
}

fn of_field(field: &Field, reason: impl std::fmt::Display) -> IpcError {
    let (name, data_type) = (field.name(), field.data_type());
    IpcError::malformed(format_args!("the column `{name}` ({data_type}): {reason}"))
}

/// Takes nodes and buffers in the order in which the library will.
struct Walk<'b, N, B, V> {
    nodes: N,
    buffers: B,
    view_buffers: V,
    version: MetadataVersion,
    body: &'b Buffer,
}

/// How many values a field has, and how many of them are null.
#[derive(Clone, Copy)]
struct Node {
    length: usize,
    nulls: usize,
}

impl<'n, 'm, N, B, V> Walk<'_, N, B, V>
where
    N: Iterator<Item = &'n FieldNode>,
    B: Iterator<Item = &'m arrow::ipc::Buffer>,
    V: Iterator<Item = i64>,
{
    /// Checks one field with all below it, and returns its length.
    fn column(&mut self, field: &Field) -> Result<usize, IpcError> {
        let node = self.node(field)?;
        let length = node.length;
        match field.data_type() {
            DataType::Null => {
                if node.nulls != length {
                    return Err(of_field(field, "values that are not null"));
                }
            }
            DataType::RunEndEncoded(ends, values) => self.runs(ends, values)?,
            DataType::Union(fields, mode) => {
                if self.version < MetadataVersion::V5 {
                    self.buffer(field, 0)?;
                }
                self.buffer(field, length)?;
                if *mode == UnionMode::Dense {
                    self.values(field, length, 4)?;
                }
                for (_, child) in fields.iter() {
                    self.column(child)?;
                }
            }
            _ => {
                self.validity(field, node)?;
                self.contents(field, length)?;
            }
        }
        Ok(length)
    }

    /// What follows the validity of a field that has one.
    fn contents(&mut self, field: &Field, length: usize) -> Result<(), IpcError> {
        match field.data_type() {
            DataType::Utf8 | DataType::Binary => {
                self.values(field, offsets(length), 4)?;
                self.buffer(field, 0)?;
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.values(field, offsets(length), 8)?;
                self.buffer(field, 0)?;
            }
            DataType::Utf8View | DataType::BinaryView => {
                self.values(field, length, 16)?;
                let count = self.view_buffers.next().unwrap_or(-1);
                let what = "buffers of a view, as the batch counts them";
                for _ in 0..bounded(what, count, self.body.len())? {
                    self.buffer(field, 0)?;
                }
            }
            DataType::List(child) | DataType::Map(child, _) => {
                self.values(field, offsets(length), 4)?;
                self.column(child)?;
            }
            DataType::LargeList(child) => {
                self.values(field, offsets(length), 8)?;
                self.column(child)?;
            }
            DataType::ListView(child) => {
                self.values(field, length, 4)?;
                self.values(field, length, 4)?;
                self.column(child)?;
            }
            DataType::LargeListView(child) => {
                self.values(field, length, 8)?;
                self.values(field, length, 8)?;
                self.column(child)?;
            }
            DataType::FixedSizeList(child, size) => {
                let size = usize::try_from(*size).unwrap_or(usize::MAX);
                let due = length.saturating_mul(size);
                let items = self.column(child)?;
                if items < due {
                    return Err(of_field(field, format_args!("{items} items, not {due}")));
                }
            }
            DataType::Struct(fields) => {
                for child in fields {
                    let items = self.column(child)?;
                    if items != length {
                        let reason = format_args!("{items} values in {length} structures");
                        return Err(of_field(child, reason));
                    }
                }
            }
            DataType::Boolean => {
                self.buffer(field, length.div_ceil(8))?;
            }
            DataType::Dictionary(keys, _) => {
                self.values(field, length, width(keys))?;
            }
            DataType::FixedSizeBinary(width) => {
                let width = usize::try_from(*width).unwrap_or(usize::MAX);
                self.buffer(field, length.saturating_mul(width))?;
            }
            other => self.values(field, length, width(other))?,
        }
        Ok(())
    }

    fn runs(&mut self, ends: &Field, values: &Field) -> Result<(), IpcError> {
        let (runs, values_length) = (self.column(ends)?, self.column(values)?);
        if runs != values_length {
            let reason = format_args!("{values_length} values in {runs} runs");
            return Err(of_field(values, reason));
        }
        Ok(())
    }

    fn node(&mut self, field: &Field) -> Result<Node, IpcError> {
        let Some(node) = self.nodes.next() else {
            return Err(of_field(field, "the batch has no node for it"));
        };
        let length = bounded("values of a column", node.length(), IPC_ITEMS_MAX)?;
        let nulls = usize::try_from(node.null_count());
        match nulls {
            Ok(nulls) if nulls <= length => Ok(Node { length, nulls }),
            _ => {
                let nulls = node.null_count();
                Err(of_field(
                    field,
                    format_args!("{nulls} nulls in {length} values"),
                ))
            }
        }
    }

    /// A validity that is left out, or one that says as many nulls as the node does: where the
    /// node says none the library would not look at it.
    fn validity(&mut self, field: &Field, node: Node) -> Result<(), IpcError> {
        let due = if node.nulls > 0 {
            node.length.div_ceil(8)
        } else {
            0
        };
        let validity = self.buffer(field, due)?;
        if validity.is_empty() || node.length == 0 {
            return Ok(());
        }
        if validity.len() < node.length.div_ceil(8) {
            return Err(of_field(field, "validity for fewer values than there are"));
        }
        let valid = BooleanBuffer::new(validity, 0, node.length).count_set_bits();
        let nulls = node.length - valid;
        if nulls != node.nulls {
            let reason = format_args!("{nulls} nulls where the batch says {}", node.nulls);
            return Err(of_field(field, reason));
        }
        Ok(())
    }

    /// The next buffer, of at least `count` values of `width` bytes, and of whole values: the
    /// library insists on it.
    fn values(&mut self, field: &Field, count: usize, width: usize) -> Result<(), IpcError> {
        let buffer = self.buffer(field, count.saturating_mul(width))?;
        if buffer.len() % width == 0 {
            return Ok(());
        }
        let reason = format_args!("a buffer of {} bytes for values of {width}", buffer.len());
        Err(of_field(field, reason))
    }

    /// The next buffer, of at least `due` bytes.
    fn buffer(&mut self, field: &Field, due: usize) -> Result<Buffer, IpcError> {
        let Some(buffer) = self.buffers.next() else {
            return Err(of_field(field, "the batch has too few buffers for it"));
        };
        let range = range_in(buffer, self.body).map_err(|reason| of_field(field, reason))?;
        if range.len() < due {
            let reason = format_args!("a buffer of {} bytes, not {due}", range.len());
            return Err(of_field(field, reason));
        }
        Ok(self.body.slice_with_length(range.start, range.len()))
    }
}

/// Where `buffer` is in `body`.
///
/// # Errors
/// A sentence, when it is not in it, or not aligned to 8 bytes.
pub(super) fn range_in(
    buffer: &arrow::ipc::Buffer,
    body: &[u8],
) -> Result<std::ops::Range<usize>, String> {
    let (offset, length) = (buffer.offset(), buffer.length());
    let start = usize::try_from(offset).ok();
    let end = start
        .zip(usize::try_from(length).ok())
        .and_then(|(start, length)| start.checked_add(length));
    let range = start.zip(end).filter(|(_, end)| *end <= body.len());
    let Some((start, end)) = range else {
        let body = body.len();
        return Err(format!(
            "a buffer at {offset} of {length} bytes in a body of {body}"
        ));
    };
    if start % 8 != 0 && start < end {
        return Err(format!(
            "a buffer at {offset}, which is not aligned to 8 bytes"
        ));
    }
    Ok(start..end)
}

/// How many offsets delimit `length` values: one more, unless there are none.
const fn offsets(length: usize) -> usize {
    match length {
        0 => 0,
        _ => length + 1,
    }
}

/// Bytes of a value of a type with one buffer of values.
fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Interval(IntervalUnit::MonthDayNano) => 16,
        other => other.primitive_width().unwrap_or(usize::MAX),
    }
}
