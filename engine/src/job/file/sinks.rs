//! The sinks of a job file.

use arrow::array::RecordBatch;

use crate::connect::{ConnectError, SINK_CONNECTORS, SinkOptions};
use crate::job::node::SinkNode;

use super::common::ConsumerCommon;
use super::error::JobFileError;
use super::inputs::Consumer;
use super::load::Connected;
use super::names::did_you_mean;
use super::read::Reader;
use super::wiring::Wiring;

/// The keys that only sinks have, beside those of every consumer.
const KEYS: [&str; 1] = ["connector"];

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SinkCommon {
    connector: String,
}

/// Adds a sink behind its input.
///
/// # Errors
/// When a key does not fit, or the connector cannot write such rows.
pub(super) fn add(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<Connected, JobFileError> {
    let document = wiring.document;
    let declared = &consumer.declared;
    let common: SinkCommon = document.read(&declared.path(&[]), &declared.node.only(&KEYS), &[])?;
    if !SINK_CONNECTORS.contains(&common.connector.as_str()) {
        let known = did_you_mean(&common.connector, SINK_CONNECTORS);
        let message = format!("there is no sink connector `{}`{known}", common.connector);
        return Err(document.error(&declared.path(&["connector"]), message));
    }
    let known = ConsumerCommon::KEYS.into_iter().chain(KEYS);
    let known: Vec<&str> = known.chain(["input"]).collect();
    let options = SinkOptions::read(&common.connector, Reader(&declared.node.without(&known)));
    let options = options.map_err(|misfit| document.misfit(&declared.path(&[]), misfit, &known))?;
    let refuse = |error: ConnectError| {
        let path = match &error {
            ConnectError::Option { option, .. } => declared.path(&[option]),
            ConnectError::File { .. } => declared.path(&["path"]),
            _ => declared.path(&["connector"]),
        };
        document.error(&path, error.to_string())
    };
    let connector = options.connect(&document.base).map_err(refuse)?;
    let input = wiring.input(consumer)?;
    let subtasks = consumer.common.parallelism.map(|subtasks| subtasks.0);
    let parallelism = subtasks.unwrap_or(wiring.parallelism);
    connector
        .validate(&input.schema, parallelism.subtasks())
        .map_err(refuse)?;
    let written = connector.paths_written(parallelism);
    wiring.claims.writes(declared.path(&["path"]), written);
    let is_standard_output = common.connector == "stdout";
    let connected = Connected {
        name: declared.name.to_owned(),
        connector: common.connector,
        describes: connector.describe(),
        memory_bytes: connector.memory_bytes(),
        stats: connector.stats(),
    };
    let schema = input.schema.clone();
    let factory =
        SinkNode::<RecordBatch, _>::new(move |subtask| Ok(connector.build(subtask, &schema)));
    let node = wiring.graph.add(declared.name, factory);
    wiring.graph[node].stats = Some(connected.stats.clone());
    wiring.set_up(node, &consumer.common);
    if is_standard_output {
        wiring.graph[node].process.get_or_insert(0);
    }
    wiring.connect(node, &input, &consumer.common);
    Ok(connected)
}
