//! Elements as lines of JSON: what `recv` prints and `send` reads.

mod columns;
mod value;
mod wire_type;

pub(crate) use wire_type::WireType;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use ringway::edge::Ending;
use ringway::element::{Barrier, BarrierMode, Drain, StreamElement, Watermark};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// An element.
    Element(StreamElement<RecordBatch>),
    /// That the stream is closed.
    Closed,
    /// That the stream failed, and why.
    Failed(String),
}

/// The line of an element. `stream` says of which, where there are several.
///
/// # Errors
/// When a value cannot be shown.
pub(crate) fn of_element(
    element: &StreamElement<RecordBatch>,
    stream: Option<u64>,
) -> Result<String, ArrowError> {
    let object = match element {
        StreamElement::Data(batch) => json!({ "data": rows(batch)? }),
        StreamElement::Watermark(Watermark { timestamp, idle }) => match idle {
            true => json!({ "idle": timestamp }),
            false => json!({ "watermark": timestamp }),
        },
        StreamElement::Barrier(Barrier { id, terminal, mode }) => {
            let mode = match *mode {
                BarrierMode::ALIGNED => json!("aligned"),
                BarrierMode::UNALIGNED => json!("unaligned"),
                BarrierMode(other) => json!(other),
            };
            json!({ "barrier": id, "mode": mode, "terminal": terminal })
        }
        StreamElement::Drain(drain) => json!({ "drain": {
            "subtask": drain.subtask,
            "target_parallelism": drain.target_parallelism,
        }}),
    };
    Ok(numbered(object, stream))
}

/// The last line of a stream.
pub(crate) fn of_ending(ending: &Ending, stream: Option<u64>) -> String {
    match ending.is_orderly() {
        true => numbered(json!({ "end": "closed" }), stream),
        false => of_error(&ending.to_string(), stream),
    }
}

/// The last line of a stream that failed.
pub(crate) fn of_error(reason: &str, stream: Option<u64>) -> String {
    numbered(json!({ "end": "error", "reason": reason }), stream)
}

/// Reads a line of a stream of this type.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(text: &str, wire_type: WireType) -> Result<Line, String> {
    let raw: Raw = serde_json::from_str(text).map_err(|error| error.to_string())?;
    raw.line(wire_type)
}

fn rows(batch: &RecordBatch) -> Result<Vec<Value>, ArrowError> {
    let rows = (0..batch.num_rows()).map(|row| {
        let values = batch
            .columns()
            .iter()
            .map(|column| value::value(column.as_ref(), row));
        Ok(Value::Array(values.collect::<Result<_, _>>()?))
    });
    rows.collect()
}

fn numbered(mut object: Value, stream: Option<u64>) -> String {
    if let (Some(stream), Value::Object(object)) = (stream, &mut object) {
        object.insert("stream".to_owned(), stream.into());
    }
    object.to_string()
}

/// A line before it is known what it says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    data: Option<Vec<Value>>,
    watermark: Option<i64>,
    idle: Option<i64>,
    barrier: Option<u64>,
    mode: Option<Mode>,
    terminal: Option<bool>,
    drain: Option<RawDrain>,
    end: Option<String>,
    reason: Option<String>,
    /// `recv` numbers its streams; whoever sends lines of one of them on need not take it out.
    #[serde(rename = "stream")]
    _stream: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDrain {
    subtask: u32,
    target_parallelism: u32,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Mode {
    Number(u8),
    Name(String),
}

impl Raw {
    fn line(self, wire_type: WireType) -> Result<Line, String> {
        let said = [
            self.data.is_some(),
            self.watermark.is_some(),
            self.idle.is_some(),
            self.barrier.is_some(),
            self.drain.is_some(),
            self.end.is_some(),
        ];
        if said.iter().filter(|&&is_said| is_said).count() != 1 {
            return Err(
                "a line has one of data, watermark, idle, barrier, drain and end".to_owned(),
            );
        }
        if self.barrier.is_none() && (self.mode.is_some() || self.terminal.is_some()) {
            return Err("mode and terminal belong to a barrier".to_owned());
        }
        if let Some(rows) = self.data {
            return data(&rows, wire_type);
        }
        if let Some(end) = self.end {
            return ending(&end, self.reason);
        }
        let watermark = self.watermark.map(Watermark::active);
        let watermark = watermark.or(self.idle.map(Watermark::idle));
        let drain = self.drain.map(|drain| Drain {
            subtask: drain.subtask,
            target_parallelism: drain.target_parallelism,
        });
        let element = match (watermark, drain) {
            (Some(watermark), _) => StreamElement::Watermark(watermark),
            (None, Some(drain)) => StreamElement::Drain(drain),
            (None, None) => StreamElement::Barrier(Barrier {
                id: self.barrier.unwrap_or_default(),
                terminal: self.terminal.unwrap_or(false),
                mode: mode(self.mode)?,
            }),
        };
        Ok(Line::Element(element))
    }
}

fn data(rows: &[Value], wire_type: WireType) -> Result<Line, String> {
    let Some(schema) = wire_type.schema() else {
        return Err(
            "rows in lines have no schema: send batches of any schema from an Arrow, Parquet or \
             NDJSON file"
                .to_owned(),
        );
    };
    let batch = columns::batch(&schema, rows)?;
    Ok(Line::Element(StreamElement::Data(batch)))
}

fn ending(end: &str, reason: Option<String>) -> Result<Line, String> {
    match end {
        "closed" => Ok(Line::Closed),
        "error" => Ok(Line::Failed(reason.unwrap_or_default())),
        other => Err(format!("the end is \"closed\" or \"error\", not {other:?}")),
    }
}

fn mode(mode: Option<Mode>) -> Result<BarrierMode, String> {
    match mode {
        None => Ok(BarrierMode::ALIGNED),
        Some(Mode::Number(byte)) => Ok(BarrierMode(byte)),
        Some(Mode::Name(name)) => match name.as_str() {
            "aligned" => Ok(BarrierMode::ALIGNED),
            "unaligned" => Ok(BarrierMode::UNALIGNED),
            other => Err(format!(
                "a mode is \"aligned\", \"unaligned\" or a number from 0 to 255, not {other:?}"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use ringway::edge::Failure;

    use super::*;

    fn round_trip(text: &str) {
        match read(text, WireType::Int64).unwrap() {
            Line::Element(element) => {
                let written: Value =
                    serde_json::from_str(&of_element(&element, None).unwrap()).unwrap();
                assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
            }
            other => panic!("{text} is an element, not {other:?}"),
        }
    }

    #[test]
    fn every_element_is_read_as_it_is_written() {
        for text in [
            r#"{"data": [[1000, 1], [null, -2]]}"#,
            r#"{"data": []}"#,
            r#"{"watermark": -9223372036854775808}"#,
            r#"{"idle": 1500}"#,
            r#"{"barrier": 18446744073709551615, "mode": "aligned", "terminal": true}"#,
            r#"{"barrier": 7, "mode": "unaligned", "terminal": false}"#,
            r#"{"barrier": 3, "mode": 7, "terminal": false}"#,
            r#"{"drain": {"subtask": 4294967295, "target_parallelism": 0}}"#,
        ] {
            round_trip(text);
        }
    }

    #[test]
    fn rows_without_columns_are_as_many_empty_arrays() {
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(3));
        let schema = std::sync::Arc::new(arrow::datatypes::Schema::empty());
        let batch = RecordBatch::try_new_with_options(schema, Vec::new(), &options).unwrap();
        let line = of_element(&StreamElement::Data(batch), None).unwrap();
        assert_eq!(line, r#"{"data":[[],[],[]]}"#);
    }

    #[test]
    fn an_end_says_whether_all_is_there() {
        let lost = Ending::Failed(Failure::peer_lost("edge"));
        assert_eq!(of_ending(&Ending::End, None), r#"{"end":"closed"}"#);
        assert_eq!(
            of_ending(&Ending::Stopped, Some(2)),
            r#"{"end":"closed","stream":2}"#
        );
        assert!(of_ending(&lost, None).contains("without having closed"));
        let closed = read(r#"{"end": "closed"}"#, WireType::Int64);
        assert_eq!(closed, Ok(Line::Closed));
        let failed = read(r#"{"end": "error", "reason": "why"}"#, WireType::Int64);
        assert_eq!(failed, Ok(Line::Failed("why".to_owned())));
    }

    #[test]
    fn the_number_of_a_stream_is_taken_and_not_sent() {
        let element = StreamElement::Watermark(Watermark::active(5));
        let line = of_element(&element, Some(3)).unwrap();
        assert_eq!(line, r#"{"stream":3,"watermark":5}"#);
        assert_eq!(read(&line, WireType::Int64), Ok(Line::Element(element)));
    }

    #[test]
    fn a_line_that_says_nothing_or_too_much_is_refused() {
        for (text, expected) in [
            ("{}", "one of data"),
            (r#"{"watermark": 1, "idle": 2}"#, "one of data"),
            (
                r#"{"watermark": 1, "mode": "aligned"}"#,
                "belong to a barrier",
            ),
            (r#"{"barrier": 1, "mode": "fast"}"#, "\"fast\""),
            (r#"{"barrier": -1}"#, "u64"),
            (r#"{"watermark": 1.5}"#, "i64"),
            (r#"{"end": "maybe"}"#, "\"maybe\""),
            (r#"{"dta": []}"#, "unknown field"),
            ("[1]", "line 1"),
        ] {
            let said = read(text, WireType::Int64).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn rows_without_a_schema_are_refused_with_what_to_do() {
        let said = read(r#"{"data": [[1]]}"#, WireType::Arrow).unwrap_err();
        assert!(said.contains("Parquet"), "{said}");
    }
}
