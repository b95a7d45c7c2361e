//! Switching the local transport off, so that what uses another one really does.

use std::ffi::OsStr;
use std::fmt;

use super::DataPlane;

/// The environment variable that switches the local transport off for the whole process, if
/// it is set to anything but the empty text and `0`.
pub const DISABLE_LOCAL_VARIABLE: &str = "RINGWAY_DISABLE_LOCAL";

/// Who switched the local transport off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffReason {
    /// The environment variable [`DISABLE_LOCAL_VARIABLE`].
    Environment,
    /// [`DataPlane::set_local_enabled`].
    Flag,
    /// A value of [`DataPlane::local_off`] that is alive.
    Scope,
}

/// Keeps the local transport off while it is alive.
#[derive(Debug)]
#[must_use = "the local transport is on again when this is dropped"]
pub struct LocalOff {
    plane: DataPlane,
}

/// The three ways in which the local transport may be off. It is on when none of them holds,
/// so that a test which switches it off can't be undone by accident from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Switch {
    by_environment: bool,
    by_flag: bool,
    scopes: usize,
}

impl LocalOff {
    pub(super) fn new(plane: DataPlane) -> Self {
        plane.lock().switch.scopes += 1;
        Self { plane }
    }
}

impl Drop for LocalOff {
    fn drop(&mut self) {
        self.plane.lock().switch.scopes -= 1;
    }
}

impl Switch {
    pub(super) fn new(by_environment: bool) -> Self {
        Self {
            by_environment,
            ..Self::default()
        }
    }

    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.by_flag = !enabled;
    }

    /// Why the transport is off, if it is.
    pub(super) fn off_reason(&self) -> Option<OffReason> {
        if self.by_environment {
            Some(OffReason::Environment)
        } else if self.by_flag {
            Some(OffReason::Flag)
        } else {
            (self.scopes > 0).then_some(OffReason::Scope)
        }
    }
}

impl fmt::Display for OffReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => write!(f, "by the environment variable {DISABLE_LOCAL_VARIABLE}"),
            Self::Flag => f.write_str("by DataPlane::set_local_enabled(false)"),
            Self::Scope => f.write_str("by DataPlane::local_off"),
        }
    }
}

/// Whether the environment of this process switches the local transport off.
pub(super) fn off_by_environment() -> bool {
    switches_off(std::env::var_os(DISABLE_LOCAL_VARIABLE).as_deref())
}

fn switches_off(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_switches_off_unless_it_is_unset_empty_or_0() {
        assert!(switches_off(Some(OsStr::new("1"))));
        assert!(switches_off(Some(OsStr::new("true"))));
        assert!(!switches_off(Some(OsStr::new("0"))));
        assert!(!switches_off(Some(OsStr::new(""))));
        assert!(!switches_off(None));
    }

    #[test]
    fn the_transport_is_on_only_when_nobody_wants_it_off() {
        let mut switch = Switch::new(false);
        assert_eq!(switch.off_reason(), None);
        switch.scopes = 2;
        assert_eq!(switch.off_reason(), Some(OffReason::Scope));
        switch.set_enabled(false);
        assert_eq!(switch.off_reason(), Some(OffReason::Flag));
        switch.scopes = 0;
        switch.set_enabled(true);
        assert_eq!(switch.off_reason(), None);

        let mut switch = Switch::new(true);
        switch.set_enabled(true);
        assert_eq!(switch.off_reason(), Some(OffReason::Environment));
    }
}
