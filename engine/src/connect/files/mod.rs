//! Files of any format: which there are, the splits they are cut into, how far each was read,
//! and how those that are written appear.

mod expand;
pub(super) mod input;
pub(super) mod list;
pub(super) mod listed;
pub(super) mod output;
pub(super) mod pending;
pub(super) mod planned;
pub(super) mod progress;
pub(super) mod source;
pub(super) mod split;
pub(super) mod watch;
