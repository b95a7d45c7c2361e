//! What carries the elements of a case.

use clap::ValueEnum;

/// What carries the elements of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// A ring in this process.
    Local,
    /// Memory that is shared with another process.
    Shared,
    /// TCP to another process.
    Socket,
}

impl Transport {
    /// All of them, the cheapest first.
    pub(crate) const ALL: [Self; 3] = [Self::Local, Self::Shared, Self::Socket];

    /// As the names of cases have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Shared => "shared",
            Self::Socket => "socket",
        }
    }
}
