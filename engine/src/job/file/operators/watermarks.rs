//! `watermarks`: new watermarks from the event times of the rows.

use serde::Deserialize;

use super::own_keys;
use crate::job::Port;
use crate::job::file::common::Watermark;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::AssignWatermarks;
use crate::watermark::WatermarkStrategy;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    watermark: Watermark,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let Keys { watermark } = own_keys(wiring, consumer)?;
    let refuse = |key: &str, message: &str| {
        let path = consumer.declared.path(&["watermark", key]);
        wiring.document.error(&path, message)
    };
    let options = watermark
        .options()
        .map_err(|(key, message)| refuse(key, message))?;
    if watermark.has_splits() {
        return Err(refuse("splits", "only a source has splits"));
    }
    let mut strategy = WatermarkStrategy::bounded_out_of_orderness(options.out_of_orderness_ms);
    if let Some(quiet_ms) = options.idle_after_ms {
        strategy = strategy.idle_after(quiet_ms);
    }
    let input = wiring.input(consumer)?;
    wiring.require_event_time(consumer, "input", &input)?;
    let node = wiring.operator(consumer, &input, &[], move |_| {
        Ok(Box::new(AssignWatermarks::new(strategy)))
    });
    wiring.name(
        consumer.declared.name,
        input.behind(node, Port::Main, input.schema.clone()),
    );
    Ok(())
}
