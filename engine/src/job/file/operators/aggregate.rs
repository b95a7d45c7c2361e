//! `aggregate`: aggregates by key over the whole stream.

use serde::Deserialize;

use super::{aggregates, own_keys};
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;
use crate::operators::columnar::{Aggregate, EmitResults};
use crate::partition::Parallelism;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    aggregates: Vec<String>,
    #[serde(default)]
    emit: Emit,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Emit {
    #[default]
    EachBatch,
    AtEnd,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let emit = match keys.emit {
        Emit::EachBatch => EmitResults::EachBatch,
        Emit::AtEnd => EmitResults::AtEnd,
    };
    let input = wiring.input(consumer)?;
    let key = input.key().map(<[usize]>::to_vec).unwrap_or_default();
    aggregates::require_key(wiring, consumer, &key)?;
    let arguments = aggregates::bind(wiring, consumer, &keys.aggregates, &input.schema)?;
    let specs = arguments.specs.clone();
    let example = Aggregate::new(arguments.schema().clone(), &key, &specs, emit);
    let schema = example.map(|aggregate| aggregate.output_schema().clone());
    let schema = schema.map_err(|error| {
        let path = consumer.declared.path(&["aggregates"]);
        wiring.document.error(&path, error.to_string())
    })?;
    aggregates::require_distinct(wiring, consumer, &schema, key.len(), specs.len())?;
    let is_keyed = !key.is_empty();
    let input = arguments.computed(wiring, consumer, input, is_keyed);
    let input_schema = input.schema.clone();
    let node = wiring.operator(consumer, &input, &[], move |_| {
        Ok(Box::new(Aggregate::new(
            input_schema.clone(),
            &key,
            &specs,
            emit,
        )?))
    });
    if !is_keyed {
        wiring.graph[node].parallelism = Some(Parallelism::ONE);
    }
    wiring.name(
        consumer.declared.name,
        input.behind(node, Port::Main, schema),
    );
    Ok(())
}
