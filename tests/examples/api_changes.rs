//! What a crate's public interface has lost since its version promised it.
//!
//! Goal: a signature that changed is found, types of parameters and results included, which
//! cargo-semver-checks does not look at; what was only added is fine here, and left to it.
//! Method: both interfaces as lists of items, one a line, from the documentation in JSON form;
//! every line that is gone or other than before is one finding.
//!
//! `api_changes BEFORE.json NOW.json`. Fails where there is a finding, unless the versions
//! allow it: before 1.0 another minor version, from then on another major one.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use public_api::diff::PublicApiDiff;
use public_api::{Builder, PublicApi};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [before, now] = paths.as_slice() else {
        return Err("two files are compared: api_changes BEFORE.json NOW.json".into());
    };
    let (before, now) = (Path::new(before), Path::new(now));
    let (promised, version) = (version_of(before)?, version_of(now)?);
    let diff = PublicApiDiff::between(interface_of(before)?, interface_of(now)?);
    for item in &diff.removed {
        println!("gone:    {item}");
    }
    for item in &diff.changed {
        println!("was:     {}\n  is now {}", item.old, item.new);
    }
    let findings = diff.removed.len() + diff.changed.len();
    let added = diff.added.len();
    println!("{findings} items gone or changed, {added} added; {promised} -> {version}");
    if findings == 0 || breaks(&promised) != breaks(&version) {
        return Ok(ExitCode::SUCCESS);
    }
    println!("an interface that changes so needs another version: see docs/api/README.md");
    Ok(ExitCode::FAILURE)
}

/// Without the implementations that follow from others.
fn interface_of(path: &Path) -> Result<PublicApi, Box<dyn Error>> {
    let builder = Builder::from_rustdoc_json(path)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .omit_blanket_impls(true);
    Ok(builder.build()?)
}

fn version_of(path: &Path) -> Result<String, Box<dyn Error>> {
    let documentation: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let version = documentation["crate_version"].as_str();
    Ok(version.ok_or("the documentation names no version")?.into())
}

/// The part of a version that changes when an interface breaks.
fn breaks(version: &str) -> Vec<&str> {
    let parts = version.split('.');
    parts
        .take(if version.starts_with("0.") { 2 } else { 1 })
        .collect()
}
