//! The harness as a program: `ringway-bench --help`.

use std::process::ExitCode;

use clap::Parser;
use ringway_bench::Cli;

fn main() -> ExitCode {
    match ringway_bench::run(&Cli::parse()) {
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
