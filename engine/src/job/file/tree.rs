//! The text of a job file as a tree that knows where each part stands.

use std::fmt;
use std::ops::Range;

use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{JobFileError, Place};

/// The languages in which a job file may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// TOML, for files that end in `.toml`.
    Toml,
    /// JSON, for files that end in `.json`.
    Json,
}

/// A value of a job file and the bytes of the text that it takes up.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the text.
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Range<usize>,
    pub(super) node: Node,
}

impl Node {
    /// The tree of `text`.
    ///
    /// # Errors
    /// When it is not in the language.
    pub(super) fn parse(text: &str, language: Language) -> Result<Self, JobFileError> {
        match language {
            Language::Toml => parse_toml(text),
            Language::Json => parse_json(text),
        }
    }

    /// The entry `key`, if this is a table that has it.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The entries, if this is a table.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The table with no other entries than `keys`.
    pub(super) fn only(&self, keys: &[&str]) -> Self {
        self.filtered(|key| keys.contains(&key))
    }

    /// The table without the entries `keys`.
    pub(super) fn without(&self, keys: &[&str]) -> Self {
        self.filtered(|key| !keys.contains(&key))
    }

    /// Where the value at `path` begins: its key, for a table; the deepest part of the path
    /// that is there, where not all of it is.
    pub(super) fn start_of(&self, path: &[String]) -> usize {
        let Some((head, rest)) = path.split_first() else {
            return self.span.start;
        };
        if let Value::List(items) = &self.value {
            let item = head
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index));
            return item.map_or(self.span.start, |item| item.start_of(rest));
        }
        let Some(entry) = self.entry(head) else {
            return self.span.start;
        };
        match rest.first() {
            Some(next) if entry.node.has(next) => entry.node.start_of(rest),
            _ if matches!(entry.node.value, Value::Table(_)) => entry.key_span.start,
            _ => entry.node.span.start,
        }
    }

    fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let entries = self.entries().iter();
        let kept = entries.filter(|entry| keep(&entry.key));
        Self {
            value: Value::Table(kept.cloned().collect()),
            span: self.span.clone(),
        }
    }

    fn has(&self, key: &str) -> bool {
        match &self.value {
            Value::List(items) => key.parse::<usize>().is_ok_and(|index| index < items.len()),
            _ => self.entry(key).is_some(),
        }
    }
}

impl Value {
    /// What it is, for a message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

fn parse_toml(text: &str) -> Result<Node, JobFileError> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        JobFileError::new(Place::at(text, at), error.message())
    })?;
    let span = table.span();
    let mut toml = Toml { text };
    Ok(Node {
        value: toml.table(table.into_inner())?,
        span,
    })
}

struct Toml<'a> {
    text: &'a str,
}

impl Toml<'_> {
    fn table(&mut self, table: DeTable<'_>) -> Result<Value, JobFileError> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            entries.push(Entry {
                key_span: key.span(),
                key: key.into_inner().into_owned(),
                node: self.node(value)?,
            });
        }
        entries.sort_by_key(|entry| entry.key_span.start);
        Ok(Value::Table(entries))
    }

    fn node(&mut self, value: Spanned<DeValue<'_>>) -> Result<Node, JobFileError> {
        let span = value.span();
        let refuse = |message| JobFileError::new(Place::at(self.text, span.start), message);
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(digits) => {
                let value = i64::from_str_radix(digits.as_str(), digits.radix());
                Value::Integer(value.map_err(|_| refuse("an integer has at most 64 bits"))?)
            }
            DeValue::Float(digits) => {
                let value = digits.as_str().parse();
                Value::Float(value.map_err(|_| refuse("this is not a number"))?)
            }
            DeValue::Datetime(_) => {
                return Err(refuse("a job file has no dates: write a string"));
            }
            DeValue::Array(items) => {
                let items = items.into_iter().map(|item| self.node(item));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.table(table)?,
        };
        Ok(Node { value, span })
    }
}

/// Tables and lists inside each other: no job needs nearly as many, and a stack has an end. The
/// reader of TOML has a bound of its own.
const NESTING_DEPTH_MAX: usize = 32;

fn parse_json(text: &str) -> Result<Node, JobFileError> {
    let json = Json { text };
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| json.refused(0, &error))?;
    let node = json.node(whole, 0)?;
    match node.value {
        Value::Table(_) => Ok(node),
        _ => Err(JobFileError::new(
            Place::at(text, node.span.start),
            format!("a job file is a table, and this is {}", node.value.kind()),
        )),
    }
}

/// Every value is first taken as the text that it is: a slice of the whole, so that its place
/// is known.
struct Json<'a> {
    text: &'a str,
}

impl Json<'_> {
    fn node(&self, raw: &RawValue, depth: usize) -> Result<Node, JobFileError> {
        let slice = raw.get();
        let start = self.offset_of(slice);
        if depth > NESTING_DEPTH_MAX {
            let message = format!("nested more than {NESTING_DEPTH_MAX} deep");
            return Err(JobFileError::new(Place::at(self.text, start), message));
        }
        let refused = |error| self.refused(start, &error);
        let value = match slice.as_bytes().first() {
            Some(b'{') => {
                let members: Members<'_> = serde_json::from_str(slice).map_err(refused)?;
                let entries = members
                    .0
                    .into_iter()
                    .map(|member| self.entry(start, member, depth + 1));
                Value::Table(entries.collect::<Result<_, _>>()?)
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(slice).map_err(refused)?;
                let items = items.into_iter().map(|item| self.node(item, depth + 1));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            _ => match serde_json::from_str(slice).map_err(refused)? {
                serde_json::Value::Bool(value) => Value::Bool(value),
                serde_json::Value::String(text) => Value::Text(text),
                serde_json::Value::Number(number) => number_of(&number),
                _ => Value::Null,
            },
        };
        Ok(Node {
            value,
            span: start..start + slice.len(),
        })
    }

    fn entry(
        &self,
        table: usize,
        (key, raw): (String, &RawValue),
        depth: usize,
    ) -> Result<Entry, JobFileError> {
        let node = self.node(raw, depth)?;
        // The key is the last text in quotes before the value.
        let before = &self.text[table..node.span.start];
        let quoted = serde_json::Value::from(key.as_str()).to_string();
        let key_start = table + before.rfind(&quoted).unwrap_or(before.len());
        Ok(Entry {
            key,
            key_span: key_start..node.span.start,
            node,
        })
    }

    fn offset_of(&self, slice: &str) -> usize {
        (slice.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    /// What the parser says of the text from `start` on, as a place in the whole text.
    fn refused(&self, start: usize, error: &serde_json::Error) -> JobFileError {
        let lines = self.text[start..].split_inclusive('\n');
        let before: usize = lines
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let at = (start + before + error.column().saturating_sub(1)).min(self.text.len());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        JobFileError::new(Place::at(self.text, at), message)
    }
}

fn number_of(number: &serde_json::Number) -> Value {
    if let Some(value) = number.as_i64() {
        Value::Integer(value)
    } else if let Some(value) = number.as_u64() {
        Value::Unsigned(value)
    } else {
        Value::Float(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// The members of a JSON object in their order, none of them twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> serde::de::Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: Vec<(String, &'de RawValue)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            if members.iter().any(|(other, _)| *other == key) {
                return Err(serde::de::Error::custom(format!("duplicate key `{key}`")));
            }
            members.push((key, value));
        }
        Ok(Members(members))
    }
}
