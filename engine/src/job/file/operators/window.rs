//! `window`: aggregates by key and window of event time.

use serde::Deserialize;

use super::aggregates;
use super::own_keys;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Stream;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::window::{WindowAggregate, WindowAssigner, WindowSpec};
use crate::partition::Parallelism;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    size: Span,
    slide: Option<Span>,
    #[serde(default)]
    offset: Span,
    #[serde(default)]
    allowed_lateness: Span,
    aggregates: Vec<String>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let declared = &consumer.declared;
    let path = |key: &str| declared.path(&[key]);
    let size = keys.size.event_time_ms();
    let slide = keys.slide.unwrap_or(keys.size).event_time_ms();
    let assigner = WindowAssigner::sliding(size, slide, keys.offset.event_time_ms());
    let assigner = assigner.map_err(|error| {
        let key = if size < 1 || keys.slide.is_none() {
            "size"
        } else {
            "slide"
        };
        wiring.document.error(&path(key), error.to_string())
    })?;
    let input = wiring.input(consumer)?;
    wiring.require_event_time(consumer, &input)?;
    let key_columns = input.key().map(<[usize]>::to_vec).unwrap_or_default();
    aggregates::require_key(wiring, consumer, &key_columns)?;
    let arguments = aggregates::bind(wiring, consumer, &keys.aggregates, &input.schema)?;
    let spec = WindowSpec {
        assigner,
        key_columns,
        aggregates: arguments.specs.clone(),
        allowed_lateness_ms: keys.allowed_lateness.ms(),
        late: Some(SideTag::new(0)),
    };
    let schema = spec.output_schema(arguments.schema());
    let schema = schema.map_err(|error| {
        wiring
            .document
            .error(&path("aggregates"), error.to_string())
    })?;
    let key_count = spec.key_columns.len();
    aggregates::require_distinct(wiring, consumer, &schema, key_count, spec.aggregates.len())?;
    let is_keyed = !spec.key_columns.is_empty();
    let input = arguments.computed(wiring, consumer, input, is_keyed);
    let taken_in = input.schema.clone();
    let node = wiring.operator(consumer, &input, &["late"], move |_| {
        Ok(Box::new(WindowAggregate::new(
            taken_in.clone(),
            spec.clone(),
        )?))
    });
    if !is_keyed {
        wiring.graph[node].parallelism = Some(Parallelism::ONE);
    }
    let name = declared.name;
    let mut late = Stream::of(node, Port::Side(0), input.schema);
    let late_name = format!("{name}.late");
    if wiring.is_taken(&late_name) {
        let back = arguments.back();
        let back = back.map_err(|error| wiring.refused(consumer, &["aggregates"], &error))?;
        if let Some(back) = back {
            late = aggregates::project(wiring, consumer, late, back, &late_name);
        }
    }
    wiring.name(late_name, late);
    wiring.name(name, Stream::of(node, Port::Main, schema));
    Ok(())
}
