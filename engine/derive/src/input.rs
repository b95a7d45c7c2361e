//! The struct that is derived for, checked.

use std::collections::HashSet;

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DataStruct, DeriveInput, Error, Field, Fields, Ident, LitStr, Type, Visibility,
};

use crate::types;

/// Columns that a struct may have. More would be a mistake rather than a struct, and what is
/// made for each adds to the time of compiling.
const COLUMNS_MAX: usize = 64;

/// The name of the column that every batch has ahead of those of the fields.
const EVENT_TIME: &str = "event_time";

/// A struct whose fields can be columns, as far as names tell.
pub(crate) struct Input {
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) columns: Vec<Column>,
    /// Fields that are no columns.
    pub(crate) skipped: Vec<Ident>,
}

/// A field that is a column.
pub(crate) struct Column {
    pub(crate) field: Ident,
    pub(crate) name: String,
    pub(crate) field_type: Type,
    pub(crate) visibility: Visibility,
}

impl Input {
    pub(crate) fn of(input: DeriveInput) -> Result<Self, Error> {
        let fields = match &input.data {
            Data::Struct(DataStruct {
                fields: Fields::Named(fields),
                ..
            }) => fields,
            Data::Struct(_) => return Err(refused(&input.ident, "a struct with named fields")),
            Data::Enum(_) => return Err(refused(&input.ident, "a struct, and this is an enum")),
            Data::Union(_) => return Err(refused(&input.ident, "a struct, and this is a union")),
        };
        if !input.generics.params.is_empty() {
            let message = "Columnar can't be derived for a generic struct: its columns must be \
                           the same for every batch. Derive it for a struct of one type, or give \
                           the stream a batcher of its own";
            return Err(Error::new(input.generics.span(), message));
        }
        if let Some(attribute) = input.attrs.iter().find(|attribute| is_ours(attribute)) {
            let message = "`columnar` is an attribute of fields, not of the struct";
            return Err(Error::new(attribute.span(), message));
        }
        let mut found = Self {
            name: input.ident,
            visibility: input.vis,
            columns: Vec::new(),
            skipped: Vec::new(),
        };
        let mut errors = Errors(None);
        for field in &fields.named {
            errors.add(found.add(field));
        }
        if errors.0.is_none() {
            errors.add(found.check());
        }
        errors.0.map_or(Ok(found), Err)
    }

    fn add(&mut self, field: &Field) -> Result<(), Error> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new(field.span(), "a field without a name"));
        };
        let attributes = Attributes::of(field)?;
        if attributes.skip {
            self.skipped.push(ident);
            return Ok(());
        }
        types::check(&field.ty)?;
        let name = attributes.rename;
        let at = name.as_ref().map_or_else(|| ident.span(), LitStr::span);
        let name = name.map_or_else(|| ident.unraw().to_string(), |name| name.value());
        if name == EVENT_TIME {
            let message = "column 0 of every batch is named `event_time`, and holds the event \
                           time of the row: give this one another name";
            return Err(Error::new(at, message));
        }
        if self.columns.iter().any(|column| column.name == name) {
            let message = format!("another column is named `{name}` too");
            return Err(Error::new(at, message));
        }
        self.columns.push(Column {
            field: ident,
            name,
            field_type: field.ty.clone(),
            visibility: field.vis.clone(),
        });
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        match self.columns.len() {
            0 => Err(Error::new(self.name.span(), "a struct without a column")),
            1..=COLUMNS_MAX => Ok(()),
            columns => {
                let message = format!(
                    "{columns} columns, and a struct may have {COLUMNS_MAX}: put those that \
                     belong together in a struct that is one field"
                );
                Err(Error::new(self.columns[COLUMNS_MAX].field.span(), message))
            }
        }
    }
}

/// What the attributes of a field say.
#[derive(Default)]
struct Attributes {
    rename: Option<LitStr>,
    skip: bool,
}

impl Attributes {
    fn of(field: &Field) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        for attribute in field.attrs.iter().filter(|attribute| is_ours(attribute)) {
            attribute.parse_nested_meta(|meta| {
                let once = seen.insert(meta.path.get_ident().map(Ident::to_string));
                if meta.path.is_ident("rename") && once {
                    found.rename = Some(meta.value()?.parse()?);
                    Ok(())
                } else if meta.path.is_ident("skip") && once {
                    found.skip = true;
                    Ok(())
                } else {
                    Err(meta.error("expected `rename = \"name\"` or `skip`, each once"))
                }
            })?;
        }
        match &found.rename {
            Some(name) if found.skip => Err(Error::new(
                name.span(),
                "a field that is skipped has no name",
            )),
            _ => Ok(found),
        }
    }
}

/// All that is wrong, so that one compilation shows it.
struct Errors(Option<Error>);

impl Errors {
    fn add(&mut self, result: Result<(), Error>) {
        match (result, &mut self.0) {
            (Ok(()), _) => {}
            (Err(error), Some(all)) => all.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("columnar")
}

fn refused(at: &Ident, wanted: &str) -> Error {
    Error::new(at.span(), format!("Columnar can be derived for {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::TokenStream;
    use quote::quote;

    fn refusals(tokens: TokenStream) -> Vec<String> {
        let errors = Input::of(syn::parse2(tokens).unwrap()).err();
        let errors = errors.into_iter().flatten();
        errors.map(|error| error.to_string()).collect()
    }

    fn refusal(tokens: TokenStream) -> String {
        let all = refusals(tokens);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    #[test]
    fn what_is_no_struct_with_named_fields_is_refused_by_what_it_is() {
        assert!(refusal(quote! { enum E { A, B } }).contains("this is an enum"));
        assert!(refusal(quote! { union U { a: i64 } }).contains("this is a union"));
        assert!(refusal(quote! { struct T(i64); }).contains("named fields"));
        assert!(refusal(quote! { struct T; }).contains("named fields"));
        assert!(refusal(quote! { struct T {} }).contains("without a column"));
        assert!(refusal(quote! { struct T<V> { v: V } }).contains("generic struct"));
        assert!(refusal(quote! { struct T<'a> { v: &'a str } }).contains("generic struct"));
    }

    #[test]
    fn names_that_columns_can_not_have_are_refused() {
        assert!(refusal(quote! { struct T { event_time: i64 } }).contains("column 0"));
        let twice = quote! { struct T { a: i64, #[columnar(rename = "a")] b: i64 } };
        assert!(refusal(twice).contains("named `a` too"));
    }

    #[test]
    fn attributes_that_are_unknown_or_contradict_each_other_are_refused() {
        for attributes in [quote!(nmae = "b"), quote!(skip, skip), quote!(rename)] {
            let found = refusals(quote! { struct T { a: i64, #[columnar(#attributes)] b: i64 } });
            assert_eq!(found.len(), 1, "{attributes}");
        }
        let both = quote! { struct T { a: i64, #[columnar(skip, rename = "c")] b: i64 } };
        assert!(refusal(both).contains("skipped"));
        let outside = quote! { #[columnar(rename = "s")] struct T { a: i64 } };
        assert!(refusal(outside).contains("not of the struct"));
    }

    #[test]
    fn sixty_four_columns_are_taken_and_one_more_is_refused() {
        let of = |fields: usize| {
            let fields = (0..fields).map(|n| quote::format_ident!("f{n}"));
            quote! { struct T { #(#fields: i64),* } }
        };
        assert!(refusals(of(64)).is_empty());
        assert!(refusal(of(65)).contains("65 columns"));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let tokens = quote! { struct T { event_time: i64, #[columnar(x)] b: i64 } };
        assert_eq!(refusals(tokens).len(), 2);
    }

    #[test]
    fn raw_names_are_columns_without_the_mark() {
        let input = Input::of(syn::parse2(quote! { struct T { r#type: i64 } }).unwrap());
        assert_eq!(
            input.map_err(|error| error.to_string()).unwrap().columns[0].name,
            "type"
        );
    }
}
