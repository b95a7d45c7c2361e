//! `sort`: all rows in order.

use serde::Deserialize;

use super::grouped::require_one_subtask;
use super::{own_keys, top_n};
use crate::connect::ArrowCompression;
use crate::job::Port;
use crate::job::file::common::Names;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Stream;
use crate::job::file::units::Size;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::{Sort, SortKey, SortSpec};
use crate::partition::Parallelism;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    order: Names,
    memory_max: Option<Size>,
    spill_max: Option<Size>,
    #[serde(default)]
    compression: ArrowCompression,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    require_one_subtask(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let mut spec = SortSpec::new(order(wiring, consumer, &keys.order, &input)?);
    spec.spill_dir = wiring.spill_dir.clone();
    spec.compression = keys.compression;
    if let Some(memory_max) = keys.memory_max {
        spec.memory_max_bytes = memory_max.bytes();
    }
    if let Some(spill_max) = keys.spill_max {
        spec.spill_max_bytes = spill_max.bytes() as u64;
    }
    let schema = input.schema.clone();
    Sort::new(schema.clone(), spec.clone()).map_err(|error| {
        let path = consumer.declared.path(&["order"]);
        wiring.document.error(&path, error.to_string())
    })?;
    let node = wiring.operator(consumer, &input, &[], move |_| {
        Ok(Box::new(Sort::new(schema.clone(), spec.clone())?))
    });
    wiring.graph[node].parallelism = Some(Parallelism::ONE);
    wiring.graph[node].needs_end = true;
    let output = input.behind(node, Port::Main, input.schema.clone());
    wiring.name(consumer.declared.name, output);
    Ok(())
}

/// The columns to order by, each with its direction and with where nulls come.
fn order(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    order: &Names,
    input: &Stream,
) -> Result<Vec<SortKey>, JobFileError> {
    let mut nulls_first = Vec::new();
    let mut without_nulls = Vec::new();
    for text in order.as_slice() {
        let (rest, first) = nulls(text);
        nulls_first.push(first);
        without_nulls.push(rest.to_owned());
    }
    let without_nulls = match order {
        Names::One(_) => Names::One(without_nulls.swap_remove(0)),
        Names::Several(_) => Names::Several(without_nulls),
    };
    let columns = top_n::order(wiring, consumer, &without_nulls, input)?;
    let keys = columns.into_iter().zip(nulls_first);
    let keys = keys.map(|((column, descending), nulls_first)| SortKey {
        column,
        descending,
        nulls_first,
    });
    Ok(keys.collect())
}

/// What stands before `NULLS FIRST` or `NULLS LAST`, and whether nulls come first.
fn nulls(text: &str) -> (&str, bool) {
    let mut words = text.trim().rsplitn(3, char::is_whitespace);
    let last = (words.next(), words.next(), words.next());
    if let (Some(place), Some(nulls), Some(rest)) = last
        && nulls.eq_ignore_ascii_case("NULLS")
    {
        for (name, first) in [("FIRST", true), ("LAST", false)] {
            if place.eq_ignore_ascii_case(name) {
                return (rest.trim_end(), first);
            }
        }
    }
    (text, false)
}
