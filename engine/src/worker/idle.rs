//! What a worker does when there is nothing to do.

use std::fmt;
use std::str::FromStr;

use crate::clock::Monotonic;
use crate::limits::SPIN_BEFORE_PARK;

/// What a worker does when there is nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdlePolicy {
    /// Spins for 50 microseconds, then parks. The default: short gaps cost no wake-up, long
    /// ones no core.
    #[default]
    Adaptive,
    /// Never parks; offers the core to others every 50 microseconds. The lowest latency, and
    /// a whole core.
    Spin,
    /// Parks at once. The least CPU; every wake-up costs some 20 microseconds.
    Park,
}

/// What the host of a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    /// Turn again.
    Again,
    /// Offer the core to others, then turn again.
    Yield,
    /// Arm the bell, turn once more, and park if that did no work either.
    Park,
}

/// Decides what to do after each turn.
#[derive(Clone, Copy, Debug)]
pub struct Idler {
    policy: IdlePolicy,
    idle_since: Option<Monotonic>,
}

impl Idler {
    /// An idler of this policy.
    pub fn new(policy: IdlePolicy) -> Self {
        Self {
            policy,
            idle_since: None,
        }
    }

    /// What to do after a turn that did `work` and ended at `now`.
    pub fn after_turn(&mut self, work: usize, now: Monotonic) -> IdleAction {
        if work > 0 {
            self.idle_since = None;
            return IdleAction::Again;
        }
        if self.policy == IdlePolicy::Park {
            return IdleAction::Park;
        }
        let since = *self.idle_since.get_or_insert(now);
        if now.since(since) < SPIN_BEFORE_PARK {
            return IdleAction::Again;
        }
        // The next idle period begins after the yield or the wake-up.
        self.idle_since = None;
        match self.policy {
            IdlePolicy::Spin => IdleAction::Yield,
            IdlePolicy::Adaptive | IdlePolicy::Park => IdleAction::Park,
        }
    }
}

impl fmt::Display for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Adaptive => "adaptive",
            Self::Spin => "spin",
            Self::Park => "park",
        })
    }
}

impl FromStr for IdlePolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "adaptive" => Ok(Self::Adaptive),
            "spin" => Ok(Self::Spin),
            "park" => Ok(Self::Park),
            other => Err(format!(
                "unknown idle policy {other:?}: use adaptive, spin or park"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(us: u64) -> Monotonic {
        Monotonic(Duration::from_micros(us))
    }

    #[test]
    fn an_adaptive_worker_spins_for_a_bounded_time_and_then_parks() {
        let mut idler = Idler::new(IdlePolicy::Adaptive);
        assert_eq!(idler.after_turn(1, at(0)), IdleAction::Again);
        assert_eq!(idler.after_turn(0, at(10)), IdleAction::Again);
        assert_eq!(idler.after_turn(0, at(59)), IdleAction::Again);
        assert_eq!(idler.after_turn(0, at(60)), IdleAction::Park);
        assert_eq!(
            idler.after_turn(0, at(900)),
            IdleAction::Again,
            "a wake-up starts anew"
        );
    }

    #[test]
    fn work_starts_the_spinning_time_anew() {
        let mut idler = Idler::new(IdlePolicy::Adaptive);
        assert_eq!(idler.after_turn(0, at(0)), IdleAction::Again);
        assert_eq!(idler.after_turn(3, at(40)), IdleAction::Again);
        assert_eq!(idler.after_turn(0, at(80)), IdleAction::Again);
    }

    #[test]
    fn a_spinning_worker_never_parks_but_yields() {
        let mut idler = Idler::new(IdlePolicy::Spin);
        assert_eq!(idler.after_turn(0, at(0)), IdleAction::Again);
        assert_eq!(idler.after_turn(0, at(50)), IdleAction::Yield);
        assert_eq!(idler.after_turn(0, at(51)), IdleAction::Again);
    }

    #[test]
    fn a_parking_worker_parks_at_once() {
        assert_eq!(
            Idler::new(IdlePolicy::Park).after_turn(0, at(0)),
            IdleAction::Park
        );
    }
}
