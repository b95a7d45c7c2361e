//! The sources of a job file.

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;

use crate::connect::{ConnectError, SOURCE_CONNECTORS, SourceOptions};
use crate::job::Port;
use crate::job::node::SourceNode;

use super::common::{SourceCommon, Watermark};
use super::error::JobFileError;
use super::inputs::Declared;
use super::load::Connected;
use super::names::did_you_mean;
use super::read::Reader;
use super::stream::{Stream, columns};
use super::wiring::Wiring;

/// Adds a source and its stream.
///
/// # Errors
/// When a key does not fit, or the connector cannot use its input.
pub(super) fn add(
    wiring: &mut Wiring<'_>,
    declared: &Declared<'_>,
) -> Result<Connected, JobFileError> {
    let document = wiring.document;
    let common_keys = declared.node.only(&SourceCommon::KEYS);
    let common: SourceCommon = document.read(&declared.path(&[]), &common_keys, &[])?;
    if !SOURCE_CONNECTORS.contains(&common.connector.as_str()) {
        let known = did_you_mean(&common.connector, SOURCE_CONNECTORS);
        let message = format!("there is no source connector `{}`{known}", common.connector);
        return Err(document.error(&declared.path(&["connector"]), message));
    }
    let options = declared.node.without(&SourceCommon::KEYS);
    let options = SourceOptions::read(&common.connector, Reader(&options));
    let options = options
        .map_err(|misfit| document.misfit(&declared.path(&[]), misfit, &SourceCommon::KEYS))?;
    let options = match &common.watermark {
        Some(watermark) => with_watermark(wiring, declared, options, watermark)?,
        None => options,
    };
    let connector = options.connect(&document.base).map_err(|error| {
        let path = match &error {
            ConnectError::Option { option, .. } => declared.path(&[option]),
            _ => declared.path(&["path"]),
        };
        document.error(&path, error.to_string())
    })?;
    let (schema, has_event_time) = (connector.schema(), connector.has_event_time());
    if common.watermark.is_some() && !has_event_time {
        let message = "there is no column `event_time` to make watermarks from: say in \
                       `event_time` which column it is, or leave `watermark` out";
        return Err(document.error(&declared.path(&["watermark"]), message));
    }
    let (read, bad_rows) = (connector.paths_read(), connector.bad_rows_path());
    note(wiring, &schema, &read);
    wiring.claims.reads(declared.path(&["path"]), read);
    let watched = connector.patterns_watched();
    wiring.claims.watches(&declared.path(&["path"]), &watched);
    let writes_bad_rows = bad_rows.is_some();
    wiring.claims.writes(declared.path(&["bad_rows"]), bad_rows);
    // What subtasks write together, or read together, they can't from several processes.
    let is_in_one_process = common.connector == "stdin" || writes_bad_rows;
    let connected = Connected {
        name: declared.name.to_owned(),
        connector: common.connector,
        describes: connector.describe(),
        memory_bytes: connector.memory_bytes(),
        stats: connector.stats(),
    };
    let (splits, is_bounded) = (connector.parallelism_max(), connector.is_bounded());
    let splits = splits.map(|splits| u32::try_from(splits).unwrap_or(u32::MAX));
    let factory =
        SourceNode::<RecordBatch, _>::new(splits, move |subtask| Ok(connector.build(subtask)));
    let node = wiring.graph.add(declared.name, factory);
    wiring.graph[node].stats = Some(connected.stats.clone());
    wiring.graph[node].uid = common.uid;
    wiring.graph[node].is_unbounded = !is_bounded;
    let process = common.process.map(usize::from);
    wiring.graph[node].process = process.or(is_in_one_process.then_some(0));
    wiring.graph[node].parallelism = common.parallelism.map(|subtasks| subtasks.0);
    let mut stream = Stream::of(node, Port::Main, schema);
    stream.has_event_time = has_event_time;
    wiring.name(declared.name, stream);
    Ok(connected)
}

/// Notes what all processes that run the job must see alike: the columns, and the names and
/// sizes of the files, which subtasks share out by their order. Folders may differ.
fn note(wiring: &mut Wiring<'_>, schema: &Schema, files: &[PathBuf]) {
    wiring.graph.note(columns(schema).as_bytes());
    for file in files {
        let name = file.file_name().unwrap_or_default();
        wiring.graph.note(name.as_encoded_bytes());
        let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        wiring.graph.note(&size.to_le_bytes());
    }
}

fn with_watermark(
    wiring: &Wiring<'_>,
    declared: &Declared<'_>,
    mut options: SourceOptions,
    watermark: &Watermark,
) -> Result<SourceOptions, JobFileError> {
    let refuse =
        |keys: &[&str], message: &str| wiring.document.error(&declared.path(keys), message);
    let made = watermark.options();
    let made = made.map_err(|(key, message)| refuse(&["watermark", key], message))?;
    let Some(place) = options.watermark_mut() else {
        let message = "this connector makes its own watermarks: leave `watermark` out";
        return Err(refuse(&["watermark"], message));
    };
    *place = Some(made);
    Ok(options)
}
