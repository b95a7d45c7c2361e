//! What stands below the help of each subcommand.

pub(crate) const ALL: &str = "\
Exit codes:
  0  measured, and every result was right
  1  a result was wrong, or a process or thread could not be started; of compare: something became slower
  2  the command line makes no sense here: nothing was measured; of compare: a file can't be read

Examples:
  ringway-bench ring                                         a table of all cases of the rings
  ringway-bench edge --transport socket --json >edges.json   the same of edges as one JSON object
  ringway-bench ring --only ring/u64/single --exact          one case
  ringway-bench ring --runs 15 --seconds 1 --cpus 2,3        longer, and on other CPUs
  ringway-bench ring --smoke                                 whether it runs here, in seconds";

pub(crate) const RING: &str = "\
Examples:
  ringway-bench ring
  ringway-bench ring --only ring/u64 --against rtrb";

pub(crate) const EDGE: &str = "\
Examples:
  ringway-bench edge
  ringway-bench edge --transport socket --only int64/1024
  ringway-bench edge --transport shared --against iceoryx2";

pub(crate) const LATENCY: &str = "\
Examples:
  ringway-bench latency
  ringway-bench latency --only park
  ringway-bench latency --transport shared --against futex
  ringway-bench latency --only spin/p50 --hdr-log latencies.hlog";

pub(crate) const LOAD: &str = "\
Examples:
  ringway-bench load
  ringway-bench load --transport socket --only park
  ringway-bench load --transport shared --seconds 10 --hdr-log latencies.hlog";

pub(crate) const SIZES: &str = "\
Examples:
  ringway-bench sizes
  ringway-bench sizes --transport shared --only bytes/1024";

pub(crate) const SCALE: &str = "\
Examples:
  ringway-bench scale
  ringway-bench scale --transport socket --only edges";

pub(crate) const MEMORY: &str = "\
Examples:
  ringway-bench memory
  ringway-bench memory --transport shared";

pub(crate) const DATA: &str = "\
Examples:
  ringway-bench data
  ringway-bench data --transport local --only flights";

pub(crate) const COLUMNAR: &str = "\
Examples:
  ringway-bench columnar
  ringway-bench columnar --only build";

pub(crate) const JOB: &str = "\
Examples:
  ringway-bench job
  ringway-bench job --only job/q5
  ringway-bench job --only job/flights --data FOLDER";

pub(crate) const PEERS: &str = "\
Examples:
  ringway-bench peers
  ringway-bench peers --only peers/process --against flume";

pub(crate) const IDLE: &str = "\
Examples:
  ringway-bench idle
  ringway-bench idle --only idle/first_row --ringway target/release/ringway";

pub(crate) const HOST: &str = "\
Examples:
  ringway-bench host
  ringway-bench host --cpus 2,3 --json";

pub(crate) const TABLE: &str = "\
Examples:
  ringway-bench table target/bench/*.json";

pub(crate) const COMPARE: &str = "\
Examples:
  ringway-bench compare before.json after.json";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::cli::Cli;

    #[test]
    fn the_help_of_every_subcommand_ends_with_examples_that_are_read() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        for one in shown.chain([&command]) {
            let name = one.get_name();
            let help = one.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_else(|| panic!("{name} has no examples"));
            let examples = help
                .lines()
                .filter(|line| line.contains("  ringway-bench "));
            let mut count = 0;
            for example in examples {
                let words = example.trim().split("   ").next().unwrap_or_default();
                let words = words.split(" >").next().unwrap_or_default();
                let cli = Cli::try_parse_from(as_a_shell_does(words));
                assert!(cli.is_ok(), "{example}: {cli:?}");
                count += 1;
            }
            assert!(count > 0, "{name} has no examples");
        }
    }

    /// What stands between quotes is one word.
    fn as_a_shell_does(line: &str) -> Vec<&str> {
        let pieces = line.split('"').enumerate();
        let words = pieces.flat_map(|(index, piece)| match index % 2 {
            0 => piece.split_whitespace().collect(),
            _ => vec![piece],
        });
        words.collect()
    }
}
