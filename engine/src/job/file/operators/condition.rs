//! The key `where`, for the operators that ask a condition of each row.

use serde::Deserialize;

use super::own_keys;
use crate::expr::BoundExpr;
use crate::job::file::error::JobFileError;
use crate::job::file::inputs::Consumer;
use crate::job::file::stream::Stream;
use crate::job::file::wiring::Wiring;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    r#where: String,
}

/// What a consumer takes, and the condition that its `where` asks of that.
pub(super) fn input_and_condition(
    wiring: &Wiring<'_>,
    consumer: &Consumer<'_>,
) -> Result<(Stream, BoundExpr), JobFileError> {
    let keys: Keys = own_keys(wiring, consumer)?;
    let input = wiring.input(consumer)?;
    let condition = wiring.condition(consumer, &["where"], &keys.r#where, &input.schema)?;
    Ok((input, condition))
}
