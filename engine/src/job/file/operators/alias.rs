//! Operators that only say how rows go on: they name a stream and add nothing to the graph.

use serde::Deserialize;

use super::own_keys;
use crate::job::file::common::ConsumerCommon;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Route;
use crate::job::file::wiring::Wiring;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

/// The rows of several streams in one.
pub(super) fn union(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    add(wiring, consumer, None, &[])
}

/// Rows of a key to the same subtask.
pub(super) fn key_by(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    if consumer.common.key.is_none() {
        let path = consumer.declared.path(&[]);
        return Err(wiring.document.error(&path, "the key `key` is missing"));
    }
    add(wiring, consumer, None, &["key"])
}

/// Whole batches to the subtasks in turn.
pub(super) fn rebalance(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(), JobFileError> {
    add(wiring, consumer, Some(Route::Rebalance), &[])
}

/// Every row to every subtask.
pub(super) fn broadcast(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(), JobFileError> {
    add(wiring, consumer, Some(Route::Broadcast), &[])
}

fn add(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
    route: Option<Route>,
    allowed: &[&str],
) -> Result<(), JobFileError> {
    let NoKeys {} = own_keys(wiring, consumer)?;
    for key in ConsumerCommon::KEYS {
        if allowed.contains(&key) {
            continue;
        }
        if consumer.declared.node.entry(key).is_some() {
            let message = "this operator only says how rows go on, no subtask runs it: give \
                           this key to what takes its rows";
            return Err(wiring
                .document
                .error(&consumer.declared.path(&[key]), message));
        }
    }
    let input = wiring.input(consumer)?;
    let stream = match route {
        Some(route) => input.routed(&route),
        None => input,
    };
    wiring.name(consumer.declared.name, stream);
    Ok(())
}
