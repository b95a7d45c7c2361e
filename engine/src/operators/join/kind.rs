//! Which rows a join gives.

use serde::Deserialize;

/// Which rows a join gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinKind {
    /// Every pair that matches.
    #[default]
    Inner,
    /// Every pair, and the left rows without a match.
    Left,
    /// Every pair, and the right rows without a match.
    Right,
    /// Every pair, and the rows of both sides without a match.
    Full,
    /// Each left row that has a match, once.
    LeftSemi,
    /// Each right row that has a match, once.
    RightSemi,
    /// Each left row that has no match.
    LeftAnti,
    /// Each right row that has no match.
    RightAnti,
}

/// What a join gives of the rows of one side alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alone {
    /// A row at its first match, which is then done with.
    pub(super) matched: bool,
    /// A row without a match, when none can come any more.
    pub(super) unmatched: bool,
    /// A row is done with at its first match.
    pub(super) ends_at_match: bool,
}

impl JoinKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Inner,
        Self::Left,
        Self::Right,
        Self::Full,
        Self::LeftSemi,
        Self::RightSemi,
        Self::LeftAnti,
        Self::RightAnti,
    ];

    /// Whether the output has the columns of both sides.
    pub const fn gives_pairs(self) -> bool {
        matches!(self, Self::Inner | Self::Left | Self::Right | Self::Full)
    }

    /// Whether rows come out that have no match, of either side.
    pub(super) const fn gives_unmatched(self) -> bool {
        self.left_alone().unmatched || self.right_alone().unmatched
    }

    /// Whether left rows come out, in pairs or alone.
    pub(super) const fn gives_left(self) -> bool {
        !matches!(self, Self::RightSemi | Self::RightAnti)
    }

    /// Whether right rows come out, in pairs or alone.
    pub(super) const fn gives_right(self) -> bool {
        !matches!(self, Self::LeftSemi | Self::LeftAnti)
    }

    pub(super) const fn left_alone(self) -> Alone {
        Alone {
            matched: matches!(self, Self::LeftSemi),
            unmatched: matches!(self, Self::Left | Self::Full | Self::LeftAnti),
            ends_at_match: matches!(self, Self::LeftSemi | Self::LeftAnti),
        }
    }

    pub(super) const fn right_alone(self) -> Alone {
        Alone {
            matched: matches!(self, Self::RightSemi),
            unmatched: matches!(self, Self::Right | Self::Full | Self::RightAnti),
            ends_at_match: matches!(self, Self::RightSemi | Self::RightAnti),
        }
    }
}
