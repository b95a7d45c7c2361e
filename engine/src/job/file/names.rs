//! Names that are not there, and those that may have been meant.

/// The end of a sentence about `name`, which is none of `known`: the one that is meant, if
/// one is close, and otherwise all of them.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> String {
    let closest = known
        .iter()
        .map(|other| (distance(name, other), *other))
        .min();
    match closest {
        None => "; there are none".to_owned(),
        Some((distance, other)) if distance <= 1 + name.chars().count() / 4 => {
            format!("; did you mean `{other}`?")
        }
        Some(_) => {
            let known: Vec<_> = known.iter().map(|other| format!("`{other}`")).collect();
            format!("; there are {}", known.join(", "))
        }
    }
}

/// How many letters have to be added, removed or replaced to make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_name_is_proposed_and_all_are_told_where_none_is_close() {
        let known = ["flights", "weather"];
        assert_eq!(did_you_mean("fligths", &known), "; did you mean `flights`?");
        assert_eq!(did_you_mean("Weather", &known), "; did you mean `weather`?");
        assert_eq!(
            did_you_mean("trains", &known),
            "; there are `flights`, `weather`"
        );
        assert_eq!(did_you_mean("x", &[]), "; there are none");
    }
}
