//! Makes rows of numbers, at a given rate.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::Deserialize;

use crate::batch::EVENT_TIME_COLUMN;
use crate::connect::connector::SourceForm;
use crate::connect::{ConnectError, SourceConnector};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;

use super::source::{Amount, MadeSource, RowMaker};

/// Options of the connector `generator`, a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorOptions {
    /// How many rows to make, all subtasks together. Default: without end.
    pub rows: Option<u64>,
    /// Rows per second, all subtasks together; 0 is as fast as possible. Default 0.
    pub rate: u64,
    /// Rows of a batch, at most; 1 to 8192. Default 8192.
    pub batch_rows: usize,
    /// Equal seeds make equal rows. Default 0.
    pub seed: u64,
    /// Keys are spread evenly over 0 to this number, which is not one of them. At least 1.
    /// Default 1000.
    pub keys: u64,
    /// The event time of row 0, in milliseconds since the Unix epoch. Default 0.
    pub start_ms: EventTime,
    /// Milliseconds of event time from one row to the next. Default 1.
    pub step_ms: u64,
    /// How far, in milliseconds, a row's event time may be before its turn: rows are out of
    /// order by up to that much, and watermarks stay behind. Default 0.
    pub jitter_ms: u64,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        Self {
            rows: None,
            rate: 0,
            batch_rows: BATCH_ROWS,
            seed: 0,
            keys: 1000,
            start_ms: 0,
            step_ms: 1,
            jitter_ms: 0,
        }
    }
}

/// A source of made-up rows: `event_time`, `id` (0, 1, 2 and so on), `key` and `value` (any
/// int64), all int64. Row number n is the same at any parallelism and rate; subtask i of p
/// makes the rows i, i + p, i + 2p and so on.
#[derive(Clone, Debug)]
pub struct Generator(MadeSource<Numbers>);

impl Generator {
    /// A generator.
    ///
    /// # Errors
    /// [`ConnectError::Option`] when an option is out of its range.
    pub fn new(options: GeneratorOptions) -> Result<Self, ConnectError> {
        let amount = Amount::new(options.rows, options.rate, options.batch_rows)?;
        if options.keys == 0 || i64::try_from(options.keys).is_err() {
            let reason = format!("must be from 1 to {}", i64::MAX);
            return Err(ConnectError::option("keys", reason));
        }
        let fields = [EVENT_TIME_COLUMN, "id", "key", "value"];
        let fields = fields.map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        Ok(Self(MadeSource::new(Numbers { options, schema }, amount)))
    }
}

impl SourceForm for Generator {
    fn form(&self) -> &dyn SourceConnector {
        &self.0
    }
}

/// Makes rows of numbers.
#[derive(Clone, Debug)]
struct Numbers {
    options: GeneratorOptions,
    schema: SchemaRef,
}

impl Numbers {
    /// The event time of a row that is not early.
    fn turn_of(&self, number: u64) -> EventTime {
        let after_ms = number.saturating_mul(self.options.step_ms);
        self.options.start_ms.saturating_add_unsigned(after_ms)
    }
}

impl RowMaker for Numbers {
    const CONNECTOR: &'static str = "generator";

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn batch(&mut self, numbers: &[u64]) -> Result<RecordBatch, OperatorError> {
        let rows = numbers.len();
        let mut columns: [Vec<i64>; 4] = std::array::from_fn(|_| Vec::with_capacity(rows));
        for &number in numbers {
            let random = mix(self.options.seed ^ mix(number));
            let early = match self.options.jitter_ms {
                0 => 0,
                jitter_ms => mix(random ^ 1) % jitter_ms.saturating_add(1),
            };
            columns[0].push(self.turn_of(number).saturating_sub_unsigned(early));
            columns[1].push(number.cast_signed());
            columns[2].push((random % self.options.keys).cast_signed());
            columns[3].push(mix(random).cast_signed());
        }
        let columns = columns.map(|column| Arc::new(Int64Array::from(column)) as _);
        Ok(RecordBatch::try_new(self.schema.clone(), columns.into())?)
    }

    fn earliest_from(&mut self, number: u64) -> EventTime {
        // A row is before its turn by the jitter at most.
        let turn = self.turn_of(number);
        turn.saturating_sub_unsigned(self.options.jitter_ms)
    }
}

/// Spreads the bits of a number over all bits of another, one to one (the finaliser of
/// `SplitMix64`).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
