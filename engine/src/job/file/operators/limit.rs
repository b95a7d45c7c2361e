//! `limit`: so many rows, from one on.

use serde::Deserialize;

use super::grouped::require_one_subtask;
use super::own_keys;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::Limit;
use crate::partition::Parallelism;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    rows: u64,
    #[serde(default)]
    offset: u64,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let Keys { rows, offset } = own_keys(wiring, consumer)?;
    require_one_subtask(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let node = wiring.operator(consumer, &input, &[], move |_| {
        Ok(Box::new(Limit::new(rows, offset)))
    });
    wiring.graph[node].parallelism = Some(Parallelism::ONE);
    let output = input.behind(node, Port::Main, input.schema.clone());
    wiring.name(consumer.declared.name, output);
    Ok(())
}
