//! The operators of a job file, by the name of their type.

mod aggregate;
mod aggregates;
mod alias;
mod filter;
mod map;
mod split;
mod watermarks;
mod window;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::common::ConsumerCommon;
use super::error::JobFileError;
use super::inputs::Consumer;
use super::names::did_you_mean;
use super::wiring::Wiring;

/// Adds an operator and names its outputs.
type Add = fn(&mut Wiring<'_>, &Consumer<'_>) -> Result<(), JobFileError>;

/// The types of operators.
const TYPES: [(&str, Add); 10] = [
    ("aggregate", aggregate::add),
    ("broadcast", alias::broadcast),
    ("filter", filter::add),
    ("key_by", alias::key_by),
    ("map", map::add),
    ("rebalance", alias::rebalance),
    ("split", split::add),
    ("union", alias::union),
    ("watermarks", watermarks::add),
    ("window", window::add),
];

#[derive(Deserialize)]
struct OfType {
    r#type: String,
}

/// Adds an operator and names its outputs.
///
/// # Errors
/// When there is no such type, a key does not fit, or the rows of the input do not.
pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let declared = &consumer.declared;
    let node = declared.node.only(&["type"]);
    let OfType { r#type } = wiring.document.read(&declared.path(&[]), &node, &[])?;
    let Some((_, add)) = TYPES.iter().find(|(name, _)| *name == r#type) else {
        let known = TYPES.map(|(name, _)| name);
        let known = did_you_mean(&r#type, &known);
        let message = format!("there is no operator of the type `{type}`{known}");
        return Err(wiring.document.error(&declared.path(&["type"]), message));
    };
    add(wiring, consumer)
}

/// The keys that an operator has of its own.
///
/// # Errors
/// When one is unknown or missing, or a value has another type.
fn own_keys<T: DeserializeOwned>(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<T, JobFileError> {
    let known: Vec<&str> = ConsumerCommon::KEYS.into_iter().chain(["type"]).collect();
    let declared = &consumer.declared;
    let node = declared.node.without(&known);
    wiring.document.read(&declared.path(&[]), &node, &known)
}
