//! What is written for a struct.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Lifetime};

use crate::input::{Column, Input};

/// All items that the derive makes.
pub(crate) fn all(input: &Input) -> TokenStream {
    let types = types(input);
    let layout = layout(input);
    let writing = writing(input);
    let reading = reading(input);
    let conversions = conversions(input);
    let name = &input.name;
    let (row, columns) = (row_name(input), columns_name(input));
    let writers = writers(input);
    let writers_name = writers_name(input);
    quote! {
        #types

        const _: () = {
            // Field types are named in here as well, so the name must be none of the user's.
            use ::ringway::batcher::derive_support as __support;

            #writers

            #[automatically_derived]
            impl __support::Columnar for #name {
                type Columns<'a> = #columns<'a>;
                type RowRef<'a> = #row<'a>;
                type Writers = #writers_name;

                #layout
                #writing
                #reading
            }

            #conversions
        };
    }
}

fn row_name(input: &Input) -> Ident {
    format_ident!("{}Ref", input.name)
}

fn columns_name(input: &Input) -> Ident {
    format_ident!("{}Columns", input.name)
}

fn writers_name(input: &Input) -> Ident {
    format_ident!("{}Writers", input.name)
}

/// What the type of a field has as that of a column. All tokens stand where the field's type
/// does, so that a type without a column is reported there.
fn of_type(column: &Column, member: &str) -> TokenStream {
    let Column { field_type, .. } = column;
    let span = field_type.span();
    let member = Ident::new(member, span);
    quote_spanned! { span =>
        <#field_type as ::ringway::batcher::derive_support::FieldType>::#member
    }
}

/// The types that a user names: a row, the columns, the view.
fn types(input: &Input) -> TokenStream {
    let Input {
        name, visibility, ..
    } = input;
    let (row, columns) = (row_name(input), columns_name(input));
    let view = format_ident!("{name}View");
    let row_doc = format!("A [`{name}`], borrowed from a batch.");
    let columns_doc = format!("The columns of a batch of [`{name}`], borrowed.");
    let view_doc = format!("The view over a batch of [`{name}`].");
    let fields = |of: &str, member: &str| -> Vec<TokenStream> {
        let field = |column: &Column| {
            let Column {
                field,
                visibility,
                name,
                ..
            } = column;
            let doc = format!("{of} `{name}`.");
            let borrowed = of_type(column, member);
            let lifetime = Lifetime::new("'a", column.field_type.span());
            let borrowed = quote_spanned!(column.field_type.span() => #borrowed<#lifetime>);
            quote! { #[doc = #doc] #visibility #field: #borrowed }
        };
        input.columns.iter().map(field).collect()
    };
    let row_fields = fields("The value of", "Ref");
    let column_fields = fields("The column", "Column");
    quote! {
        #[doc = #row_doc]
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(dead_code)]
        #visibility struct #row<'a> {
            #(#row_fields,)*
        }

        #[doc = #columns_doc]
        #[derive(Clone, Copy)]
        #[allow(dead_code)]
        #visibility struct #columns<'a> {
            #(#column_fields,)*
        }

        #[doc = #view_doc]
        #[allow(dead_code)]
        #visibility type #view<'a> = ::ringway::batcher::ColumnarView<'a, #name>;
    }
}

/// What is known without any value.
fn layout(input: &Input) -> TokenStream {
    let layout = input.columns.iter().map(|column| {
        let (name, field_type) = (&column.name, &column.field_type);
        quote_spanned!(field_type.span() => __support::Layout::field::<#field_type>(#name))
    });
    quote! {
        fn layout() -> &'static __support::Layout {
            static LAYOUT: ::std::sync::OnceLock<__support::Layout> = ::std::sync::OnceLock::new();
            LAYOUT.get_or_init(|| __support::Layout::of(::std::vec![#(#layout),*]))
        }
    }
}

/// What gathers the values of each field. Nobody can name it, and it is public because it is
/// an associated type of a struct that may be; its fields are not, so that their types need
/// not be either.
fn writers(input: &Input) -> TokenStream {
    let name = writers_name(input);
    let fields = input.columns.iter().map(|Column { field, .. }| field);
    let types = input.columns.iter().map(|column| of_type(column, "Writer"));
    quote! {
        #[doc(hidden)]
        #[allow(unreachable_pub)]
        pub struct #name {
            #(#fields: #types,)*
        }
    }
}

/// From values to arrays.
fn writing(input: &Input) -> TokenStream {
    let writers_name = writers_name(input);
    let columns = || input.columns.iter();
    let writers = columns().map(|column| {
        let (field_type, writer) = (&column.field_type, of_type(column, "Writer"));
        let field = &column.field;
        quote_spanned! { field_type.span() =>
            #field: <#writer as __support::ColumnWriter<#field_type>>::with_capacity(rows)
        }
    });
    let call = |method: &str, arguments: fn(&Ident) -> TokenStream| -> Vec<TokenStream> {
        let method = format_ident!("{method}");
        let one = |Column {
                       field, field_type, ..
                   }: &Column| {
            let arguments = arguments(field);
            quote! {
                __support::ColumnWriter::<#field_type>::#method(&mut writers.#field, #arguments)
            }
        };
        columns().map(one).collect()
    };
    let pushes = call("push", |field| quote!(&value.#field));
    let blanks = call("push_blank", |_| quote!());
    let extends = call(
        "extend",
        |field| quote!(values.clone().map(|value| &value.#field)),
    );
    let finishes = columns().map(
        |Column {
             field, field_type, ..
         }| { quote!(__support::ColumnWriter::<#field_type>::finish(writers.#field)?) },
    );
    quote! {
        fn writers(rows: usize) -> Self::Writers {
            #writers_name { #(#writers,)* }
        }

        #[inline]
        fn push(
            writers: &mut Self::Writers,
            value: &Self,
        ) -> ::core::result::Result<(), __support::Full> {
            #(#pushes?;)*
            ::core::result::Result::Ok(())
        }

        fn push_blank(writers: &mut Self::Writers) {
            #(#blanks;)*
        }

        fn extend<'r>(
            writers: &mut Self::Writers,
            values: impl ::core::iter::ExactSizeIterator<Item = &'r Self> + ::core::clone::Clone,
        ) -> ::core::result::Result<(), __support::Full> {
            #(#extends?;)*
            ::core::result::Result::Ok(())
        }

        fn finish(
            writers: Self::Writers,
        ) -> ::core::result::Result<::std::vec::Vec<__support::ArrayRef>, __support::ArrowError> {
            ::core::result::Result::Ok(::std::vec![#(#finishes),*])
        }
    }
}

/// From arrays to values.
fn reading(input: &Input) -> TokenStream {
    let (row, columns) = (row_name(input), columns_name(input));
    let children = input.columns.iter().enumerate().map(|(index, column)| {
        let Column {
            field,
            name,
            field_type,
            ..
        } = column;
        quote!(#field: __support::child::<#field_type>(arrays, #index, #name, live)?)
    });
    let values = input.columns.iter().map(|column| {
        let (field, at) = (&column.field, of_type(column, "at"));
        quote!(#field: #at(&columns.#field, row))
    });
    let owned = input.columns.iter().map(|column| {
        let (field, owned) = (&column.field, of_type(column, "owned"));
        quote!(#field: #owned(row.#field))
    });
    let skipped = &input.skipped;
    quote! {
        fn columns<'a>(
            arrays: &'a [__support::ArrayRef],
            live: &__support::Live,
        ) -> ::core::result::Result<Self::Columns<'a>, __support::Misfit> {
            ::core::result::Result::Ok(#columns { #(#children,)* })
        }

        #[inline]
        fn row<'a>(columns: &Self::Columns<'a>, row: usize) -> Self::RowRef<'a> {
            #row { #(#values,)* }
        }

        #[inline]
        fn from_row(row: Self::RowRef<'_>) -> Self {
            Self {
                #(#owned,)*
                #(#skipped: ::core::default::Default::default(),)*
            }
        }
    }
}

/// The struct as what the engine asks for, and the row as a value of its own.
fn conversions(input: &Input) -> TokenStream {
    let (name, row) = (&input.name, row_name(input));
    quote! {
        #[automatically_derived]
        impl __support::Batchable for #name {
            fn batcher() -> ::std::sync::Arc<dyn __support::Batcher<Self>> {
                ::std::sync::Arc::new(__support::ColumnarBatcher::<Self>::new())
            }
        }

        #[automatically_derived]
        impl __support::Viewed for #name {
            type View<'a> = __support::ColumnarView<'a, Self>;
        }

        #[automatically_derived]
        impl ::core::convert::From<#row<'_>> for #name {
            fn from(row: #row<'_>) -> Self {
                <Self as __support::Columnar>::from_row(row)
            }
        }
    }
}
