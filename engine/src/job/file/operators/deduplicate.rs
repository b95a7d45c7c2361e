//! `deduplicate`: the first row of each key.

use serde::Deserialize;

use super::grouped::require_positive;
use super::own_keys;
use crate::job::Port;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::units::Span;
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::columnar::{Deduplicate, DeduplicateSpec};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    ttl: Option<Span>,
}

pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let Keys { ttl } = own_keys(wiring, consumer)?;
    require_positive(wiring, consumer, "ttl", ttl.map(Span::ms))?;
    let input = wiring.input(consumer)?;
    let Some(key_columns) = input.key().map(<[usize]>::to_vec) else {
        let message = "the key `key` is missing: rows of which columns are the same?";
        let path = consumer.declared.path(&[]);
        return Err(wiring.document.error(&path, message));
    };
    let sides: &[&str] = match ttl {
        Some(_) => {
            wiring.require_event_time(consumer, "input", &input)?;
            &["late"]
        }
        None => &[],
    };
    let spec = DeduplicateSpec {
        key_columns,
        ttl_ms: ttl.map(Span::ms),
        late: ttl.map(|_| SideTag::new(0)),
    };
    let schema = input.schema.clone();
    let node = wiring.operator(consumer, &input, sides, move |_| {
        Ok(Box::new(Deduplicate::new(schema.clone(), spec.clone())?))
    });
    let name = consumer.declared.name;
    let output = |port| input.behind(node, port, input.schema.clone());
    if ttl.is_some() {
        wiring.name(format!("{name}.late"), output(Port::Side(0)));
    }
    wiring.name(name, output(Port::Main));
    Ok(())
}
