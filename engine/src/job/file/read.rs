//! From the tree of a job file to the structs that say what may stand in it.

use serde::de::value::{StrDeserializer, StringDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::names::did_you_mean;
use super::tree::{Entry, Node, Value};

/// What does not fit, and under which keys.
#[derive(Debug)]
pub(super) struct Misfit {
    /// From the node that was read, inwards.
    pub(super) path: Vec<String>,
    pub(super) kind: MisfitKind,
}

/// What does not fit.
#[derive(Debug)]
pub(super) enum MisfitKind {
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    Other(String),
}

/// The struct that `node` holds.
///
/// # Errors
/// When a key is unknown or missing, or a value has another type.
pub(super) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, Misfit> {
    T::deserialize(Reader(node))
}

/// Deserializes a node.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a Node);

impl Misfit {
    fn under(mut self, key: impl Into<String>) -> Self {
        self.path.insert(0, key.into());
        self
    }
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            MisfitKind::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            MisfitKind::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known = did_you_mean(variant, expected);
        de::Error::custom(format!("`{variant}` is not one of these{known}"))
    }

    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self {
            path: Vec::new(),
            kind: MisfitKind::Other(message.to_string()),
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self {
            path: Vec::new(),
            kind: MisfitKind::UnknownKey {
                key: field.to_owned(),
                known: expected,
            },
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("the key `{field}` is missing"))
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visitor.visit_i64(*value),
            Value::Unsigned(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Table(entries) => visitor.visit_map(Entries { entries, next: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match &self.0.value {
            Value::Text(text) => visitor.visit_enum(Variant(text)),
            other => Err(de::Error::custom(format!(
                "expected a string, and found {}",
                other.kind()
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'a> {
    items: &'a [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some(item) = self.items.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        let value = seed.deserialize(Reader(item));
        value
            .map(Some)
            .map_err(|misfit| misfit.under(index.to_string()))
    }
}

struct Entries<'a> {
    entries: &'a [Entry],
    next: usize,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        let Some(entry) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Misfit> = entry.key.as_str().into_deserializer();
        seed.deserialize(key)
            .map(Some)
            .map_err(|misfit| misfit.under(entry.key.as_str()))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Misfit> {
        let entry = &self.entries[self.next];
        self.next += 1;
        seed.deserialize(Reader(&entry.node))
            .map_err(|misfit| misfit.under(entry.key.as_str()))
    }
}

/// A variant without content.
struct Variant<'a>(&'a str);

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Misfit> {
        let name: StringDeserializer<Misfit> = self.0.to_owned().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Result<T::Value, Misfit> {
        Err(self.needs_content())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Result<V::Value, Misfit> {
        Err(self.needs_content())
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Misfit> {
        Err(self.needs_content())
    }
}

impl Variant<'_> {
    fn needs_content(&self) -> Misfit {
        de::Error::custom(format!("`{}` cannot be written as a string", self.0))
    }
}
