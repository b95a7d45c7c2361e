//! The sections of a report.

/// Where a figure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Sizes,
    Distributions,
    Load,
    Cpu,
    Scaling,
    Memory,
    Peers,
    Others,
}

impl Section {
    pub(crate) const ALL: [Self; 9] = [
        Self::Overview,
        Self::Sizes,
        Self::Distributions,
        Self::Load,
        Self::Cpu,
        Self::Scaling,
        Self::Memory,
        Self::Peers,
        Self::Others,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview: how many times as good",
            Self::Sizes => "Throughput by size",
            Self::Distributions => "Latency percentiles",
            Self::Load => "Latency against load",
            Self::Cpu => "CPU seconds per GB",
            Self::Scaling => "Scaling",
            Self::Memory => "Memory of an edge",
            Self::Peers => "Beside other transports",
            Self::Others => "Rates, costs and limits",
        }
    }

    pub(crate) const fn caption(self) -> &'static str {
        match self {
            Self::Overview => {
                "A dot is ours against one baseline: right of the line ours is better, whether \
                 more or less is better in its unit. Whiskers reach from the least to the \
                 greatest of the pairs of runs; a hollow dot is noisy, and not to be trusted."
            }
            Self::Sizes => {
                "Medians over the runs, on logarithmic axes. Whiskers reach from the least to \
                 the greatest run; a hollow mark is noisy. Ours was measured beside each baseline \
                 in turn: its mark is the median of these, and its whiskers reach over all."
            }
            Self::Distributions => {
                "How long all but a share of the messages took at most. Each further nine is \
                 equally far along the axis; the longest of all stands at its end."
            }
            Self::Load => {
                "How long half, 99 % and 99.9 % of the messages took at most, from the moment \
                 they were due, at each offered rate."
            }
            Self::Cpu => {
                "What all threads and processes that take part spend to move 10⁹ bytes; less is \
                 better. Bars are to scale within a case."
            }
            Self::Scaling => "What becomes of the rate as there are more edges, or more ends.",
            Self::Memory => "Resident memory for each edge, as there are more of them.",
            Self::Peers => "Bars are to scale within a case, and not from one to another.",
            Self::Others => {
                "Bars are to scale within a case, and not from one to another. Of times and of \
                 what is held to a limit, less is better."
            }
        }
    }

    /// Whether its figures are of unlike heights.
    pub(crate) const fn is_uneven(self) -> bool {
        !matches!(
            self,
            Self::Sizes | Self::Distributions | Self::Load | Self::Memory
        )
    }

    /// Of a case, by the first word of its name.
    pub(super) fn of(name: &str) -> Self {
        match name.split('/').next().unwrap_or_default() {
            "edge" | "sizes" => Self::Sizes,
            "load" => Self::Load,
            "scale" => Self::Scaling,
            "memory" => Self::Memory,
            "peers" => Self::Peers,
            _ => Self::Others,
        }
    }
}
