//! Names for columns of results that come out of inputs, so that no two are the same.

use std::collections::HashSet;
use std::ops::Range;

use arrow::datatypes::SchemaRef;

use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::wiring::Wiring;

/// The columns of a result that are those of one input.
pub(super) struct FromInput<'a> {
    pub(super) columns: Range<usize>,
    /// What a column is called by behind its name, where another has that name.
    pub(super) suffix: &'a str,
    /// The key of the job file that says so.
    pub(super) suffix_key: &'static str,
}

/// The names of the columns of `schema`. What an operator makes itself keeps its name; a column
/// of an input gets the suffix of that where its name is one that the operator makes, or that a
/// column of an input before has.
///
/// # Errors
/// When two have the same name even so.
pub(super) fn distinct(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    schema: &SchemaRef,
    inputs: &[FromInput<'_>],
) -> Result<Vec<String>, JobFileError> {
    let own_name = |at: usize| schema.field(at).name().as_str();
    let is_of_input = |at: &usize| inputs.iter().any(|input| input.columns.contains(at));
    let columns = 0..schema.fields().len();
    let made: HashSet<&str> = columns
        .clone()
        .filter(|at| !is_of_input(at))
        .map(own_name)
        .collect();
    let mut names: Vec<String> = columns.map(|at| own_name(at).to_owned()).collect();
    let mut before = made.clone();
    let mut given: HashSet<String> = made.iter().map(|&name| name.to_owned()).collect();
    for input in inputs {
        for at in input.columns.clone() {
            if before.contains(own_name(at)) {
                names[at].push_str(input.suffix);
            }
            if !given.insert(names[at].clone()) {
                return Err(refused(wiring, consumer, input.suffix_key, &names[at]));
            }
        }
        before.extend(input.columns.clone().map(own_name));
    }
    Ok(names)
}

fn refused(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
    suffix_key: &str,
    name: &str,
) -> JobFileError {
    let message = format!(
        "two columns of the results are named `{name}`: say another `{suffix_key}`, or rename one \
         with `map` before"
    );
    let keys: &[&str] = match consumer.declared.node.entry(suffix_key) {
        Some(_) => &[suffix_key],
        None => &[],
    };
    wiring
        .document
        .error(&consumer.declared.path(keys), message)
}
