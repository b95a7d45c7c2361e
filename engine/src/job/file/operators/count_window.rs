//! `count_window`: aggregates by key and so many rows.

use serde::Deserialize;

use super::grouped::{self, require_positive};
use super::own_keys;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::window::CountSpec;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    rows: u64,
    aggregates: Vec<String>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    require_positive(wiring, consumer, "rows", Some(keys.rows))?;
    let input = wiring.input(consumer)?;
    let spec = |key_columns, aggregates| CountSpec {
        rows_max: keys.rows,
        key_columns,
        aggregates,
    };
    grouped::add(wiring, consumer, &keys.aggregates, input, spec)
}
