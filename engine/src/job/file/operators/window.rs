//! `window`: aggregates by key and window of event time.

use serde::Deserialize;

use super::grouped::{self, require_positive};
use super::{own_keys, windows};
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::window::{EarlyResults, WindowSpec};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    size: Span,
    slide: Option<Span>,
    offset: Option<Span>,
    #[serde(default)]
    allowed_lateness: Span,
    early_every: Option<Span>,
    early_rows: Option<u64>,
    aggregates: Vec<String>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let assigner = windows::assigner(wiring, consumer, keys.size, keys.slide, keys.offset)?;
    let early = EarlyResults {
        every_ms: keys.early_every.map(Span::ms),
        every_rows: keys.early_rows,
    };
    require_positive(wiring, consumer, "early_every", early.every_ms)?;
    require_positive(wiring, consumer, "early_rows", early.every_rows)?;
    let input = wiring.input(consumer)?;
    wiring.require_event_time(consumer, "input", &input)?;
    let allowed_lateness_ms = keys.allowed_lateness.ms();
    let spec = |key_columns, aggregates| WindowSpec {
        assigner,
        key_columns,
        aggregates,
        allowed_lateness_ms,
        early,
        late: Some(SideTag::new(0)),
    };
    grouped::add(wiring, consumer, &keys.aggregates, input, spec)
}
