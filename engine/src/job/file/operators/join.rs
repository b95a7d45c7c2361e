//! `interval_join` and `window_join`: rows of two streams by key and event time.

use serde::Deserialize;

use super::columns::{self, FromInput};
use super::{own_keys, windows};
use crate::job::Port;
use crate::job::file::common::Names;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::{Route, Stream};
use crate::job::file::units::{SignedSpan, Span};
use crate::job::file::wiring::Wiring;
use crate::operator::SideTag;
use crate::operators::SpecError;
use crate::operators::join::{IntervalBounds, Join, JoinKind, JoinSpec, JoinTime};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IntervalKeys {
    lower: SignedSpan,
    upper: SignedSpan,
    #[serde(default)]
    kind: JoinKind,
    left_key: Option<Names>,
    right_key: Option<Names>,
    left_suffix: Option<String>,
    right_suffix: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowKeys {
    size: Span,
    slide: Option<Span>,
    offset: Option<Span>,
    #[serde(default)]
    kind: JoinKind,
    left_key: Option<Names>,
    right_key: Option<Names>,
    left_suffix: Option<String>,
    right_suffix: Option<String>,
}

/// What both joins say.
struct JoinKeys {
    kind: JoinKind,
    keys: [Option<Names>; 2],
    suffixes: [Option<String>; 2],
}

pub(super) fn add_interval(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(), JobFileError> {
    let keys: IntervalKeys = own_keys(wiring, consumer)?;
    let bounds = IntervalBounds::new(keys.lower.event_time_ms(), keys.upper.event_time_ms());
    let bounds = bounds.map_err(|error| {
        let path = consumer.declared.path(&["lower"]);
        wiring.document.error(&path, error.to_string())
    })?;
    let join = JoinKeys {
        kind: keys.kind,
        keys: [keys.left_key, keys.right_key],
        suffixes: [keys.left_suffix, keys.right_suffix],
    };
    add(wiring, consumer, JoinTime::Interval(bounds), join)
}

pub(super) fn add_window(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(), JobFileError> {
    let keys: WindowKeys = own_keys(wiring, consumer)?;
    let assigner = windows::assigner(wiring, consumer, keys.size, keys.slide, keys.offset)?;
    let join = JoinKeys {
        kind: keys.kind,
        keys: [keys.left_key, keys.right_key],
        suffixes: [keys.left_suffix, keys.right_suffix],
    };
    add(wiring, consumer, JoinTime::SameWindow(assigner), join)
}

fn add(
    wiring: &mut Wiring<'_>,
    consumer: &Consumer<'_>,
    time: JoinTime,
    join: JoinKeys,
) -> Result<(), JobFileError> {
    if consumer.common.exchange.is_some() {
        let message = "rows of a join go by its keys: leave `exchange` out";
        let path = consumer.declared.path(&["exchange"]);
        return Err(wiring.document.error(&path, message));
    }
    let [left, right] = wiring.two_inputs(consumer)?;
    wiring.require_event_time(consumer, "left", &left)?;
    wiring.require_event_time(consumer, "right", &right)?;
    let [left_keys, right_keys] = join_keys(wiring, consumer, &join.keys, [&left, &right])?;
    let left = left.routed(&Route::Key(left_keys.clone()));
    let right = right.routed(&Route::Key(right_keys.clone()));
    let spec = JoinSpec {
        kind: join.kind,
        time,
        left_keys,
        right_keys,
        left_late: Some(SideTag::new(0)),
        right_late: Some(SideTag::new(1)),
    };
    let names = names(wiring, consumer, &spec, &join.suffixes, [&left, &right])?;
    let inputs = [left.schema.clone(), right.schema.clone()];
    let make = move || -> Result<Join, SpecError> {
        let [left, right] = inputs.clone();
        Ok(Join::new(left, right, spec.clone())?.renamed(&names))
    };
    let example = make().map_err(|error| refused(wiring, consumer, &error))?;
    let schema = example.output_schema().clone();
    let sides = ["left_late", "right_late"];
    let node = wiring.operator_of_two(consumer, [&left, &right], &sides, move |_| {
        Ok(Box::new(make()?))
    });
    let name = consumer.declared.name;
    for (port, (side, input)) in sides.into_iter().zip([left, right]).enumerate() {
        let late = Stream::of(node, Port::Side(port), input.schema);
        wiring.name(format!("{name}.{side}"), late);
    }
    wiring.name(name, Stream::of(node, Port::Main, schema));
    Ok(())
}

/// What the columns of the results are called.
fn names(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    spec: &JoinSpec,
    [left_suffix, right_suffix]: &[Option<String>; 2],
    [left, right]: [&Stream; 2],
) -> Result<Vec<String>, JobFileError> {
    let schema = spec.output_schema(&left.schema, &right.schema);
    let schema = schema.map_err(|error| refused(wiring, consumer, &error))?;
    let (left_columns, right_columns) = spec.columns_of_inputs(&left.schema, &right.schema);
    let inputs = [
        FromInput {
            columns: left_columns,
            suffix: left_suffix.as_deref().unwrap_or("_left"),
            suffix_key: "left_suffix",
        },
        FromInput {
            columns: right_columns,
            suffix: right_suffix.as_deref().unwrap_or("_right"),
            suffix_key: "right_suffix",
        },
    ];
    columns::distinct(wiring, consumer, &schema, &inputs)
}

fn refused(wiring: &Wiring<'_>, consumer: &Consumer<'_>, error: &SpecError) -> JobFileError {
    let path = consumer.declared.path(&[]);
    wiring.document.error(&path, error.to_string())
}

/// The positions of the key columns of either side.
fn join_keys(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    [left_key, right_key]: &[Option<Names>; 2],
    [left, right]: [&Stream; 2],
) -> Result<[Vec<usize>; 2], JobFileError> {
    let path = |keys: &[&str]| consumer.declared.path(keys);
    let refuse = |keys: &[&str], message: &str| Err(wiring.document.error(&path(keys), message));
    let (left_name, right_name, left_names, right_names) =
        match (&consumer.common.key, left_key, right_key) {
            (Some(key), None, None) => ("key", "key", key, key),
            (None, Some(left), Some(right)) => ("left_key", "right_key", left, right),
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                let message = "`key` names the columns of both sides: leave it out, or `left_key` \
                               and `right_key`";
                return refuse(&["key"], message);
            }
            (None, Some(_), None) => return refuse(&[], "the key `right_key` is missing"),
            (None, None, Some(_)) => return refuse(&[], "the key `left_key` is missing"),
            (None, None, None) => {
                let message = "the key `key` is missing: which columns are equal in rows that \
                               belong together? If they have other names on either side, say \
                               `left_key` and `right_key`";
                return refuse(&[], message);
            }
        };
    let lefts = wiring.key_columns(consumer, left_name, left_names, &left.schema)?;
    let rights = wiring.key_columns(consumer, right_name, right_names, &right.schema)?;
    if lefts.len() != rights.len() {
        let message = format!(
            "{} columns, and `left_key` has {}: each is compared with one",
            rights.len(),
            lefts.len()
        );
        return refuse(&["right_key"], &message);
    }
    for (index, (&of_left, &of_right)) in lefts.iter().zip(&rights).enumerate() {
        let (of_left, of_right) = (left.schema.field(of_left), right.schema.field(of_right));
        if of_left.data_type() != of_right.data_type() {
            let mut path = path(&[right_name]);
            path.extend(right_names.key_of(index));
            let message = format!(
                "`{}` of the right input is {}, and `{}` of the left {}: rows of two types are \
                 never equal, cast one in a `map` before",
                of_right.name(),
                of_right.data_type(),
                of_left.name(),
                of_left.data_type()
            );
            return Err(wiring.document.error(&path, message));
        }
    }
    Ok([lefts, rights])
}
