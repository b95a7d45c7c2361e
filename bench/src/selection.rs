//! Which cases are measured.

/// What `--only`, `--against` and `--exact` say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The names that are wanted; all of them where it is empty.
    pub(crate) only: String,
    /// The baselines that are wanted; all of them where it is empty.
    pub(crate) against: String,
    /// Whether a name is wanted only if it is the whole text, and not where it contains it.
    pub(crate) exact: bool,
}

impl Selection {
    /// Whether a case of this name is wanted, whatever it is compared with.
    pub(crate) fn takes_name(&self, name: &str) -> bool {
        self.matches(&self.only, name)
    }

    /// Whether this very pair is wanted.
    pub(crate) fn takes(&self, name: &str, baseline_name: &str) -> bool {
        self.takes_name(name) && self.matches(&self.against, baseline_name)
    }

    fn matches(&self, wanted: &str, text: &str) -> bool {
        if self.exact && !wanted.is_empty() {
            text == wanted
        } else {
            text.contains(wanted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: &str, against: &str, exact: bool) -> Selection {
        Selection {
            only: only.to_owned(),
            against: against.to_owned(),
            exact,
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
}
