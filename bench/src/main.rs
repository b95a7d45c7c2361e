//! The harness as a program: `ringway-bench --help`.

use std::process::ExitCode;

use clap::Parser;
use ringway_bench::{Cli, Command, keep_freed_memory};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if matches!(cli.command, Command::Job | Command::Columnar) {
        keep_freed_memory();
    }
    match ringway_bench::run(&cli) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ringway-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
