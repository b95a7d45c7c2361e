//! The command line.

mod bench;
mod child;
mod examples;
mod flags;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::compare::CompareArgs;
use crate::report::ReportArgs;

pub use bench::{Bench, EdgeArgs, IdleArgs, LatencyArgs, LoadArgs, LogArgs, TransportsArgs};
pub use child::{
    Child, EchoArgs, HoldArgs, ReceiveArgs, ReceiveManyArgs, SharedEchoArgs, SharedReceiveArgs,
};
pub use flags::CommonArgs;
pub(crate) use flags::{SECONDS, cpu};
pub use run::run;

/// Measures Ringway beside what one would pick instead, in one run.
#[derive(Clone, Debug, Parser)]
#[command(name = "ringway-bench", version, after_help = examples::ALL)]
pub struct Cli {
    /// What to measure.
    #[command(subcommand)]
    pub command: Command,
    /// How.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl Cli {
    /// Whether the flags select this pair, as far as the subcommand measures it.
    pub fn selects(&self, name: &str, baseline_name: &str) -> bool {
        self.common.selection().takes(name, baseline_name)
    }
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// To measure.
    #[command(flatten)]
    Bench(Bench),
    /// The machine, and how far apart its two cores are.
    #[command(after_help = examples::HOST)]
    Host,
    /// Results of earlier runs as a Markdown table.
    #[command(after_help = examples::TABLE)]
    Table(TableArgs),
    /// Everything, part by part, as one page with plots.
    Report(ReportArgs),
    /// Two files with results side by side: what became faster, what slower.
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// To be another process of a case.
    #[command(flatten)]
    Child(Child),
}

/// What to show.
#[derive(Clone, Debug, Args)]
pub struct TableArgs {
    /// Files with what --json printed.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn common_flags_are_read_behind_the_subcommand() {
        let words = "ringway-bench edge --transport local --smoke --runs 3 --cpus 0,1 --json";
        let cli = Cli::try_parse_from(words.split(' ')).unwrap();
        assert!(cli.common.smoke && cli.common.json);
        assert_eq!(cli.common.runs, Some(3));
        assert!(cli.common.cpus.is_some());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "ring --seconds 0",
            "ring --runs 0",
            "ring --cpus 1",
            "table",
            "compare a.json",
            "compare a.json b.json --threshold -1",
            "",
        ] {
            let words = format!("ringway-bench {words}");
            assert!(
                Cli::try_parse_from(words.trim().split(' ')).is_err(),
                "{words}"
            );
        }
    }
}
