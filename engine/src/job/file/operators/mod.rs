//! The operators of a job file, by the name of their type.

mod aggregate;
mod aggregates;
mod alias;
mod blocking;
mod columns;
mod condition;
mod count_window;
mod deduplicate;
mod filter;
mod grouped;
mod join;
mod limit;
mod map;
mod session;
mod sort;
mod split;
mod top_n;
mod watermarks;
mod window;
mod windows;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::common::ConsumerCommon;
use super::document::Document;
use super::error::JobFileError;
use super::inputs::{Consumer, Declared};
use super::names::did_you_mean;
use super::wiring::Wiring;

/// Adds an operator and names its outputs.
type Add = fn(&mut Wiring<'_>, &Consumer<'_>) -> Result<(), JobFileError>;

/// The types of operators.
const TYPES: [(&str, Add); 19] = [
    ("aggregate", aggregate::add),
    ("blocking", blocking::add),
    ("broadcast", alias::broadcast),
    ("count_window", count_window::add),
    ("deduplicate", deduplicate::add),
    ("filter", filter::add),
    ("interval_join", join::add_interval),
    ("key_by", alias::key_by),
    ("limit", limit::add),
    ("map", map::add),
    ("rebalance", alias::rebalance),
    ("session", session::add),
    ("sort", sort::add),
    ("split", split::add),
    ("top_n", top_n::add),
    ("union", alias::union),
    ("watermarks", watermarks::add),
    ("window", window::add),
    ("window_join", join::add_window),
];

/// The types of operators that take a left and a right input.
const OF_TWO: [&str; 2] = ["interval_join", "window_join"];

#[derive(Deserialize)]
struct OfType {
    r#type: String,
}

/// Whether an operator takes a left and a right input.
///
/// # Errors
/// When there is no such type.
pub(super) fn takes_two(
    document: &Document,
    declared: &Declared<'_>,
) -> Result<bool, JobFileError> {
    let (name, _) = of_type(document, declared)?;
    Ok(OF_TWO.contains(&name))
}

/// Adds an operator and names its outputs.
///
/// # Errors
/// When there is no such type, a key does not fit, or the rows of the input do not.
pub(super) fn add(wiring: &mut Wiring<'_>, consumer: &Consumer<'_>) -> Result<(), JobFileError> {
    let (_, add) = of_type(wiring.document, &consumer.declared)?;
    add(wiring, consumer)
}

fn of_type(
    document: &Document,
    declared: &Declared<'_>,
) -> Result<(&'static str, Add), JobFileError> {
    let node = declared.node.only(&["type"]);
    let OfType { r#type } = document.read(&declared.path(&[]), &node, &[])?;
    let found = TYPES.into_iter().find(|(name, _)| *name == r#type);
    found.ok_or_else(|| {
        let known = TYPES.map(|(name, _)| name);
        let known = did_you_mean(&r#type, &known);
        let message = format!("there is no operator of the type `{type}`{known}");
        document.error(&declared.path(&["type"]), message)
    })
}

/// The keys that an operator has of its own.
///
/// # Errors
/// When one is unknown or missing, or a value has another type.
fn own_keys<T: DeserializeOwned>(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<T, JobFileError> {
    let inputs = consumer.inputs.iter().map(|(key, _)| *key);
    let known = ConsumerCommon::KEYS.into_iter().chain(["type"]);
    let known: Vec<&str> = known.chain(inputs).collect();
    let declared = &consumer.declared;
    let node = declared.node.without(&known);
    wiring.document.read(&declared.path(&[]), &node, &known)
}
