//! How many instructions each part takes, beside what was recorded: `scripts/bench-guard` calls it.
//!
//! What gungraun has counted is read from stdin, in the form that it prints with `--output-format json`.

mod counts;

use std::env;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use counts::{Counts, instructions};

const USAGE: &str = "ringway-instructions check|record FILE TOOLCHAIN TOOLS <SUMMARIES";

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<String>>()) {
        Ok(words) => {
            println!("{words}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String, Box<dyn Error>> {
    let [verb, file, toolchain, tools] = arguments else {
        return Err(USAGE.into());
    };
    let now = Counts {
        toolchain: toolchain.clone(),
        tools: tools.clone(),
        instructions: instructions(&io::read_to_string(io::stdin())?)?,
    };
    let file = Path::new(file);
    match verb.as_str() {
        "check" => Ok(now.against(&Counts::read(file)?)?),
        "record" => {
            now.write(file)?;
            let parts = now.instructions.len();
            Ok(format!("recorded {parts} parts in {}", file.display()))
        }
        _ => Err(USAGE.into()),
    }
}
