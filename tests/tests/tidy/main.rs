//! The rules of the code base that no compiler checks, each with what to do instead in its failure.
//!
//! Goal: structure that is hoped for decays, structure that is tested does not. Method: the files of the
//! repository are read, Rust is split into code and comments, and each rule is a function from files to
//! findings. Each rule also has canaries beside it: texts in which it must find something, and near misses in
//! which it must not.

mod bans;
mod items;
mod layers;
mod lengths;
mod mask;
mod modules;
mod pages;
mod proofs;
mod purity;
mod tree;

/// Fails with all findings at once, one a line.
fn check(rule: fn(&[tree::File]) -> Vec<String>) {
    let found = rule(&tree::read());
    assert!(
        found.is_empty(),
        "{} findings:\n{}\n",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn files_are_short() {
    check(lengths::files);
    check(lengths::median);
}

#[test]
fn functions_are_short() {
    check(lengths::functions);
}

#[test]
fn lines_fit_a_screen() {
    check(lengths::lines);
}

#[test]
fn banned_items_stay_out() {
    check(bans::items);
}

#[test]
fn comments_promise_nothing_for_later() {
    check(bans::markers);
}

#[test]
fn names_say_what_is_inside() {
    check(bans::names);
}

#[test]
fn nothing_points_outside_the_repository() {
    check(bans::foreign_paths);
}

#[test]
fn protocol_code_is_pure() {
    check(purity::check);
}

#[test]
fn the_engine_forbids_unsafe_code() {
    check(purity::forbids_unsafe);
}

#[test]
fn modules_use_only_what_lies_below() {
    check(layers::check);
}

#[test]
fn every_file_is_compiled() {
    check(modules::dead);
}

#[test]
fn tests_stand_last_in_a_file() {
    check(modules::tests_last);
}

#[test]
fn the_top_level_is_fixed() {
    check(modules::top_level);
}

#[test]
fn pages_have_one_title() {
    check(pages::titles);
}

#[test]
fn links_between_pages_lead_somewhere() {
    check(pages::links);
}

#[test]
fn proofs_of_scenarios_are_there() {
    check(proofs::scenarios);
    check(proofs::suites);
}
