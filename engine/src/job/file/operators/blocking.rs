//! `blocking`: where one stage ends and the next begins.

use serde::Deserialize;

use super::own_keys;
use crate::connect::ArrowCompression;
use crate::connect::spill::BlockingOptions;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::units::Size;
use crate::job::file::wiring::Wiring;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    spill_max: Option<Size>,
    #[serde(default)]
    compression: ArrowCompression,
    restarts: Option<u32>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let default = BlockingOptions::default();
    let spill_max = keys.spill_max.map(|size| size.bytes() as u64);
    let options = BlockingOptions {
        spill_dir: wiring.spill_dir.clone(),
        spill_max_bytes: spill_max.unwrap_or(default.spill_max_bytes),
        compression: keys.compression,
        restarts: keys.restarts.unwrap_or(default.restarts),
    };
    let name = consumer.declared.name;
    let edge = wiring.graph.add_blocking(name, options);
    let (spills, reads) = (edge.from, edge.to);
    wiring.set_up(reads, &consumer.common);
    wiring.graph[spills].parallelism = wiring.graph[reads].parallelism;
    if let Some(uid) = &consumer.common.uid {
        wiring.graph[spills].uid = Some(format!("{uid}.spill"));
    }
    wiring.connect(spills, &input, &consumer.common);
    // The subtask of a key stays that of the key: each reads what its like has written.
    wiring.name(name, input.behind(reads, Port::Main, input.schema.clone()));
    Ok(())
}
