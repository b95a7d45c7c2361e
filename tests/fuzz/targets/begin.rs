//! Puts what a search begins with into its folder, before libFuzzer reads that.

use std::path::Path;

use ringway_tests::fuzzed::seeds;

/// Writes the seeds of a target into the folder that `RINGWAY_FUZZ_CORPUS` names, if it names one.
pub fn begin(target: &str) {
    let Some(folder) = std::env::var_os("RINGWAY_FUZZ_CORPUS") else {
        return;
    };
    for (number, bytes) in seeds(target).iter().enumerate() {
        let path = Path::new(&folder).join(format!("seed-{number}"));
        std::fs::write(path, bytes).expect("scripts/fuzz has made the folder");
    }
}
