//! The harness as a program: `ringway-bench --help`.

use std::process::ExitCode;

use clap::Parser;
use ringway_bench::{Cli, Command, keep_freed_memory};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Bench(bench) = &cli.command
        && bench.keeps_freed_memory()
    {
        keep_freed_memory();
    }
    match ringway_bench::run(&cli) {
        Ok(answer) => {
            print!("{}", answer.text);
            ExitCode::from(u8::from(!answer.is_good))
        }
        Err(error) => {
            eprintln!("ringway-bench: {error}");
            // Of compare 1 says that something became slower.
            let is_compare = matches!(cli.command, Command::Compare(_));
            ExitCode::from(if is_compare || error.is_usage() { 2 } else { 1 })
        }
    }
}
