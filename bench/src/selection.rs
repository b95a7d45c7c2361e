//! Which cases are measured.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::error::BenchError;

/// How many names are told where none was right.
const NEAR_MAX: usize = 5;

/// What `--only`, `--against` and `--exact` say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The names that are wanted; all of them where it is empty.
    pub(crate) only: String,
    /// The baselines that are wanted; all of them where it is empty.
    pub(crate) against: String,
    /// Whether a name is wanted only if it is the whole text, and not where it contains it.
    pub(crate) exact: bool,
    /// The names and baselines that were asked for and not taken, to tell them where nothing was.
    pub(crate) passed_over: RefCell<BTreeSet<String>>,
    pub(crate) passed_over_baselines: RefCell<BTreeSet<String>>,
}

impl Selection {
    /// Whether a case of this name is wanted, whatever it is compared with.
    pub(crate) fn takes_name(&self, name: &str) -> bool {
        let takes = self.matches(&self.only, name);
        if !takes {
            self.passed_over.borrow_mut().insert(name.to_owned());
        }
        takes
    }

    /// Whether this very pair is wanted.
    pub(crate) fn takes(&self, name: &str, baseline_name: &str) -> bool {
        if !self.takes_name(name) {
            return false;
        }
        let takes = self.matches(&self.against, baseline_name);
        if !takes {
            let mut passed_over = self.passed_over_baselines.borrow_mut();
            passed_over.insert(baseline_name.to_owned());
        }
        takes
    }

    /// Whether nothing is said about what is wanted.
    pub(crate) fn is_everything(&self) -> bool {
        self.only.is_empty() && self.against.is_empty()
    }

    /// Why nothing was measured, where that is so.
    pub(crate) fn why_nothing(&self) -> BenchError {
        let baselines = self.passed_over_baselines.borrow();
        let names = self.passed_over.borrow();
        let (flag, wanted, all) = match baselines.is_empty() {
            true => ("--only", &self.only, &names),
            false => ("--against", &self.against, &baselines),
        };
        let near = near(wanted, all).join(", ");
        BenchError::usage(format!(
            "{flag} {wanted:?} leaves nothing to measure of what this subcommand and its flags \
             measure; near it: {near}"
        ))
    }

    fn matches(&self, wanted: &str, text: &str) -> bool {
        if self.exact && !wanted.is_empty() {
            text == wanted
        } else {
            text.contains(wanted)
        }
    }
}

/// Those of the names that share most with what was wanted.
fn near<'a>(wanted: &str, names: &'a BTreeSet<String>) -> Vec<&'a str> {
    let triples = |text: &str| -> BTreeSet<Vec<u8>> {
        text.as_bytes().windows(3).map(<[u8]>::to_vec).collect()
    };
    let wanted = triples(wanted);
    let mut names: Vec<(f64, &str)> = names
        .iter()
        .map(|name| {
            let of_name = triples(name);
            let shared = of_name.intersection(&wanted).count();
            let all = of_name.union(&wanted).count().max(1);
            (shared as f64 / all as f64, name.as_str())
        })
        .collect();
    // Where two share as much, the order of their names stays.
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    names.truncate(NEAR_MAX);
    names.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: &str, against: &str, exact: bool) -> Selection {
        Selection {
            only: only.to_owned(),
            against: against.to_owned(),
            exact,
            ..Selection::default()
        }
    }

    #[test]
    fn a_part_of_a_name_takes_all_cases_that_contain_it() {
        let some = selection("socket/int64/1", "", false);
        assert!(some.takes("edge/socket/int64/1024", "raw tcp"));
        assert!(!some.takes("edge/socket/int64/256", "raw tcp"));
        assert!(!selection("", "tokio", false).takes("edge/socket/int64/1", "raw tcp"));
    }

    #[test]
    fn an_exact_name_takes_no_longer_one() {
        let one = selection("edge/socket/int64/1", "raw tcp", true);
        assert!(one.takes("edge/socket/int64/1", "raw tcp"));
        assert!(!one.takes("edge/socket/int64/1024", "raw tcp"));
        assert!(!one.takes("edge/socket/int64/1", "raw tcp polled"));
    }

    #[test]
    fn what_is_not_said_selects_nothing_out() {
        assert!(Selection::default().takes("ring/u64/single", "rtrb"));
        assert!(selection("", "", true).takes("ring/u64/single", "rtrb"));
    }

    #[test]
    fn a_name_that_takes_nothing_is_answered_with_those_near_it() {
        let typo = selection("ring/u65", "", false);
        for name in [
            "ring/record_batch/chunk",
            "ring/u64/single",
            "ring/rtt/spin",
        ] {
            assert!(!typo.takes(name, "rtrb"));
        }
        let error = typo.why_nothing();
        assert!(error.is_usage());
        let words = error.to_string();
        assert!(words.contains("near it: ring/u64/single, "), "{words}");
    }

    #[test]
    fn a_baseline_that_takes_nothing_is_answered_with_the_baselines() {
        let typo = selection("ring/u64", "rtbr", false);
        assert!(!typo.takes("ring/u64/single", "rtrb"));
        assert!(!typo.takes("ring/rtt/spin", "futex"));
        let words = typo.why_nothing().to_string();
        assert!(words.contains("--against \"rtbr\""), "{words}");
        assert!(words.ends_with("near it: rtrb"), "{words}");
    }
}
