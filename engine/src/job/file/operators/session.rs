//! `session`: aggregates by key and session.

use serde::Deserialize;

use super::grouped::{self, require_positive};
use super::own_keys;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::window::SessionSpec;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    gap: Span,
    #[serde(default)]
    allowed_lateness: Span,
    aggregates: Vec<String>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    require_positive(wiring, consumer, "gap", Some(keys.gap.ms()))?;
    let input = wiring.input(consumer)?;
    wiring.require_event_time(consumer, "input", &input)?;
    let spec = |key_columns, aggregates| SessionSpec {
        gap_ms: keys.gap.event_time_ms(),
        key_columns,
        aggregates,
        allowed_lateness_ms: keys.allowed_lateness.ms(),
        late: Some(SideTag::new(0)),
    };
    grouped::add(wiring, consumer, &keys.aggregates, input, spec)
}
