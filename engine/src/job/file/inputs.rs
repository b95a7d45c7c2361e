//! Which operator or sink takes which stream, and in what order to build them.

use std::collections::{HashMap, HashSet};

use super::common::{ConsumerCommon, Names, OneInput, TwoInputs};
use super::document::{Document, KeyPath, under};
use super::error::JobFileError;
use super::names::did_you_mean;
use super::operators::takes_two;
use super::tree::{Entry, Node, Value};

/// A part of a job file that becomes a node: a source, an operator or a sink.
#[derive(Clone)]
pub(super) struct Declared<'a> {
    pub(super) section: Section,
    pub(super) name: &'a str,
    pub(super) node: &'a Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Sources,
    Operators,
    Sinks,
}

/// An operator or sink with what it has in common with all others.
#[derive(Clone)]
pub(super) struct Consumer<'a> {
    pub(super) declared: Declared<'a>,
    pub(super) common: ConsumerCommon,
    /// The streams that it takes, each with the key under which they are named.
    pub(super) inputs: Vec<(&'static str, Names)>,
}

impl Section {
    const ALL: [Self; 3] = [Self::Sources, Self::Operators, Self::Sinks];

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Sources => "sources",
            Self::Operators => "operators",
            Self::Sinks => "sinks",
        }
    }
}

impl Consumer<'_> {
    /// The names of all streams that it takes.
    pub(super) fn input_names(&self) -> impl Iterator<Item = &String> {
        self.inputs.iter().flat_map(|(_, names)| names.as_slice())
    }
}

impl Declared<'_> {
    /// The streams that it takes.
    ///
    /// # Errors
    /// When it does not name them.
    fn inputs(&self, document: &Document) -> Result<Vec<(&'static str, Names)>, JobFileError> {
        let path = self.path(&[]);
        if self.section == Section::Operators && takes_two(document, self)? {
            let node = self.node.only(&["left", "right"]);
            let TwoInputs { left, right } = document.read(&path, &node, &[])?;
            return Ok(vec![("left", left), ("right", right)]);
        }
        let OneInput { input } = document.read(&path, &self.node.only(&["input"]), &[])?;
        Ok(vec![("input", input)])
    }

    /// Where it stands, with `keys` behind it.
    pub(super) fn path(&self, keys: &[&str]) -> KeyPath {
        under(&[self.section.key().to_owned(), self.name.to_owned()], keys)
    }
}

/// Everything that is declared, in the order of the file.
///
/// # Errors
/// When a name is not a name, or stands for two things.
pub(super) fn declared(document: &Document) -> Result<Vec<Declared<'_>>, JobFileError> {
    let mut all: Vec<Declared<'_>> = Vec::new();
    for section in Section::ALL {
        let Some(entry) = document.root.entry(section.key()) else {
            continue;
        };
        require_table(document, &[section.key().to_owned()], &entry.node)?;
        for Entry { key, node, .. } in entry.node.entries() {
            let this = Declared {
                section,
                name: key,
                node,
            };
            require_table(document, &this.path(&[]), node)?;
            if key.is_empty() || key.contains('.') {
                let message = format!("`{key}` is no name: a name has letters and no dot");
                return Err(document.error(&this.path(&[]), message));
            }
            if let Some(other) = all.iter().find(|other| other.name == key) {
                let message = format!(
                    "`{key}` is also in `{}`: a name stands for one thing",
                    other.section.key()
                );
                return Err(document.error(&this.path(&[]), message));
            }
            all.push(this);
        }
    }
    check_uids(document, &all)?;
    Ok(all)
}

/// The operators and sinks, each behind those whose outputs it takes.
///
/// # Errors
/// When an input is unknown, or inputs form a cycle.
pub(super) fn in_order<'a>(
    document: &Document,
    declared: &[Declared<'a>],
) -> Result<Vec<Consumer<'a>>, JobFileError> {
    let mut waiting: Vec<Consumer<'a>> = Vec::new();
    for this in declared
        .iter()
        .filter(|this| this.section != Section::Sources)
    {
        let node = this.node.only(&ConsumerCommon::KEYS);
        let common: ConsumerCommon = document.read(&this.path(&[]), &node, &[])?;
        let inputs = this.inputs(document)?;
        for (key, names) in &inputs {
            check_names(document, declared, this, key, names)?;
        }
        waiting.push(Consumer {
            declared: this.clone(),
            common,
            inputs,
        });
    }
    let mut placed: HashSet<&str> = declared
        .iter()
        .filter(|this| this.section == Section::Sources)
        .map(|this| this.name)
        .collect();
    let mut ordered = Vec::with_capacity(waiting.len());
    loop {
        let before = ordered.len();
        let mut later = Vec::new();
        for consumer in waiting {
            let is_placed = |input: &String| placed.contains(owner(input));
            if consumer.input_names().all(is_placed) {
                placed.insert(consumer.declared.name);
                ordered.push(consumer);
            } else {
                later.push(consumer);
            }
        }
        if later.is_empty() {
            return Ok(ordered);
        }
        if ordered.len() == before {
            return Err(cycle(document, &later));
        }
        waiting = later;
    }
}

/// The node that an input belongs to: `hourly` of `hourly.late`.
fn owner(input: &str) -> &str {
    input.split_once('.').map_or(input, |(owner, _)| owner)
}

fn require_table(document: &Document, path: &[String], node: &Node) -> Result<(), JobFileError> {
    match &node.value {
        Value::Table(_) => Ok(()),
        other => {
            let message = format!("expected a table, and found {}", other.kind());
            Err(document.error(path, message))
        }
    }
}

/// State is found by uid, so each has its own.
fn check_uids(document: &Document, declared: &[Declared<'_>]) -> Result<(), JobFileError> {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for this in declared {
        let Some(Value::Text(uid)) = this.node.entry("uid").map(|entry| &entry.node.value) else {
            continue;
        };
        if let Some(other) = owners.insert(uid, this.name) {
            let message = format!("`{other}` has the uid `{uid}` too: state is found by it");
            return Err(document.error(&this.path(&["uid"]), message));
        }
    }
    Ok(())
}

fn check_names(
    document: &Document,
    declared: &[Declared<'_>],
    this: &Declared<'_>,
    key: &str,
    input: &Names,
) -> Result<(), JobFileError> {
    let names = input.as_slice();
    let path_of = |index: usize| {
        let mut path = this.path(&[key]);
        path.extend(input.key_of(index));
        path
    };
    if names.is_empty() {
        return Err(document.error(&path_of(0)[..3], "the list is empty: name a stream"));
    }
    for (index, input) in names.iter().enumerate() {
        let known = declared
            .iter()
            .filter(|other| other.section != Section::Sinks);
        let known: Vec<&str> = known.map(|other| other.name).collect();
        let message = match declared.iter().find(|other| other.name == owner(input)) {
            Some(other) if other.section == Section::Sinks => {
                format!("`{input}` is a sink, which has no output")
            }
            Some(_) if names[..index].contains(input) => {
                format!("`{input}` is named twice: each row would come twice")
            }
            Some(_) => continue,
            None => format!(
                "there is no stream `{input}`{}",
                did_you_mean(owner(input), &known)
            ),
        };
        return Err(document.error(&path_of(index), message));
    }
    Ok(())
}

/// The cycle that is among `left`, which wait for each other.
fn cycle(document: &Document, left: &[Consumer<'_>]) -> JobFileError {
    let mut seen: Vec<&Consumer<'_>> = Vec::new();
    let mut this = &left[0];
    while !seen
        .iter()
        .any(|other| other.declared.name == this.declared.name)
    {
        seen.push(this);
        let next = this.input_names().filter_map(|input| {
            left.iter()
                .find(|other| other.declared.name == owner(input))
        });
        // Invariant: whatever is left waits for another that is, or it would have been placed.
        this = next.last().expect("something is waited for");
    }
    let start = seen
        .iter()
        .position(|other| other.declared.name == this.declared.name);
    let mut names: Vec<&str> = seen[start.unwrap_or(0)..]
        .iter()
        .map(|consumer| consumer.declared.name)
        .collect();
    // Each takes the output of the next, so rows go round the other way.
    names.push(this.declared.name);
    names.reverse();
    let message = format!("the inputs form a cycle, {}: break it", names.join(" -> "));
    document.error(&this.declared.path(&[this.inputs[0].0]), message)
}
