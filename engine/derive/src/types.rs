//! Types of fields that are known to have no column, with what to take instead.
//!
//! The compiler refuses every type that is no `FieldType`, at length. Those that people try
//! first are told in one sentence here.

use syn::spanned::Spanned;
use syn::{Error, GenericArgument, Ident, PathArguments, PathSegment, Type};

/// Refuses a type that by its name has no column; what a name does not tell is left to the
/// compiler.
pub(crate) fn check(field_type: &Type) -> Result<(), Error> {
    let instead = match field_type {
        Type::Paren(inner) => return check(&inner.elem),
        Type::Group(inner) => return check(&inner.elem),
        Type::Path(path) => match path.path.segments.last() {
            Some(segment) => return check_segment(field_type, segment),
            None => return Ok(()),
        },
        Type::Reference(_) => "the columns own their values: take `String` or `Vec<E>`",
        Type::Array(_) | Type::Slice(_) => "take `Vec<E>`",
        Type::Tuple(_) => "take a struct that derives `Columnar`",
        Type::Ptr(_) | Type::BareFn(_) | Type::ImplTrait(_) | Type::TraitObject(_) => {
            "it holds no values that can be sent"
        }
        _ => return Ok(()),
    };
    Err(refused(field_type, instead))
}

fn check_segment(field_type: &Type, segment: &PathSegment) -> Result<(), Error> {
    let name = segment.ident.to_string();
    let inner = arguments(segment);
    let instead = match (name.as_str(), inner.len()) {
        ("BTreeMap", 2) if !is_key(inner[0]) => "a key is an integer, `bool` or `String`",
        ("Vec", 1) | ("BTreeMap", 2) => return inner.into_iter().try_for_each(check),
        ("Option", 1) if is_option(inner[0]) => "a column has one kind of null: take one option",
        ("Option", 1) => return check(inner[0]),
        ("usize", 0) => "its width is not the same everywhere: take `u64`",
        ("isize", 0) => "its width is not the same everywhere: take `i64`",
        ("u128" | "i128", 0) => "take two 64-bit integers, or `String`",
        ("char" | "str", 0) => "take `String`",
        ("Box" | "Rc" | "Arc", 1) => "take what it points to",
        ("HashMap", 2 | 3) => "take `BTreeMap`, whose order is the same for equal maps",
        ("HashSet" | "BTreeSet" | "VecDeque", 1 | 2) => "take `Vec`",
        _ => return Ok(()),
    };
    Err(refused(field_type, instead))
}

fn is_option(field_type: &Type) -> bool {
    last_name(field_type).is_some_and(|name| name == "Option")
}

/// Whether a type may be a key, as far as its name tells.
fn is_key(field_type: &Type) -> bool {
    const NEVER: [&str; 5] = ["f32", "f64", "Option", "Vec", "BTreeMap"];
    last_name(field_type).is_none_or(|name| NEVER.iter().all(|never| name != never))
}

fn last_name(field_type: &Type) -> Option<&Ident> {
    match field_type {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

/// The types between the angle brackets of a name.
fn arguments(segment: &PathSegment) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    });
    types.collect()
}

fn refused(field_type: &Type, instead: &str) -> Error {
    let message = format!("a field of this type has no column: {instead}");
    Error::new(field_type.span(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(field_type: &str) -> Option<String> {
        let parsed = syn::parse_str(field_type).unwrap();
        check(&parsed).err().map(|error| error.to_string())
    }

    #[test]
    fn types_that_people_try_are_refused_with_what_to_take_instead() {
        for (field_type, instead) in [
            ("usize", "`u64`"),
            ("Option<std::primitive::isize>", "`i64`"),
            ("Vec<Option<char>>", "`String`"),
            ("&'static str", "`String`"),
            ("[u8; 4]", "`Vec<E>`"),
            ("BTreeMap<String, (i64, i64)>", "struct"),
            ("BTreeMap<f64, i64>", "a key is"),
            ("Box<i64>", "points to"),
            ("std::collections::HashMap<String, i64>", "`BTreeMap`"),
            ("Option<std::option::Option<i64>>", "one option"),
            ("fn()", "no values"),
        ] {
            let message = refusal(field_type).unwrap_or_else(|| panic!("{field_type}"));
            assert!(message.contains(instead), "{field_type}: {message}");
        }
    }

    #[test]
    fn types_with_a_column_and_unknown_names_pass() {
        for field_type in [
            "i64",
            "String",
            "Vec<Option<Vec<u8>>>",
            "std::collections::BTreeMap<i64, Option<Inner>>",
            "my::Own",
            "Decimal<4>",
        ] {
            assert_eq!(refusal(field_type), None, "{field_type}");
        }
    }
}
