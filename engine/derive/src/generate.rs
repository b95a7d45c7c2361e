//! What is written for a struct.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, Lifetime};

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
    let writers = input.columns.iter().map(|column| of_type(column, "Writer"));
    quote! {
        #types

        const _: () = {
            use ::ringway::batcher::derive_support as support;

            #[automatically_derived]
            impl support::Columnar for #name {
                type Columns<'a> = #columns<'a>;
                type RowRef<'a> = #row<'a>;
                type Writers = (#(#writers,)*);

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
        quote_spanned!(field_type.span() => support::Layout::field::<#field_type>(#name))
    });
    quote! {
        fn layout() -> &'static support::Layout {
            static LAYOUT: ::std::sync::OnceLock<support::Layout> = ::std::sync::OnceLock::new();
            LAYOUT.get_or_init(|| support::Layout::of(::std::vec![#(#layout),*]))
        }
    }
}

/// From values to arrays.
fn writing(input: &Input) -> TokenStream {
    let columns = || input.columns.iter().enumerate();
    let writers = columns().map(|(_, column)| {
        let (field_type, writer) = (&column.field_type, of_type(column, "Writer"));
        quote_spanned! { field_type.span() =>
            <#writer as support::ColumnWriter<#field_type>>::with_capacity(rows)
        }
    });
    let call = |method: &str, arguments: fn(&Ident) -> TokenStream| -> Vec<TokenStream> {
        let method = format_ident!("{method}");
        let one = |(index, column): (usize, &Column)| {
            let (field_type, index) = (&column.field_type, Index::from(index));
            let arguments = arguments(&column.field);
            quote! {
                support::ColumnWriter::<#field_type>::#method(&mut writers.#index, #arguments)
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
    let finishes = columns().map(|(index, column)| {
        let (field_type, index) = (&column.field_type, Index::from(index));
        quote!(support::ColumnWriter::<#field_type>::finish(writers.#index)?)
    });
    quote! {
        fn writers(rows: usize) -> Self::Writers {
            (#(#writers,)*)
        }

        #[inline]
        fn push(
            writers: &mut Self::Writers,
            value: &Self,
        ) -> ::core::result::Result<(), support::Full> {
            #(#pushes?;)*
            ::core::result::Result::Ok(())
        }

        fn push_blank(writers: &mut Self::Writers) {
            #(#blanks;)*
        }

        fn extend<'r>(
            writers: &mut Self::Writers,
            values: impl ::core::iter::ExactSizeIterator<Item = &'r Self> + ::core::clone::Clone,
        ) -> ::core::result::Result<(), support::Full> {
            #(#extends?;)*
            ::core::result::Result::Ok(())
        }

        fn finish(
            writers: Self::Writers,
        ) -> ::core::result::Result<::std::vec::Vec<support::ArrayRef>, support::ArrowError> {
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
        quote!(#field: support::child::<#field_type>(arrays, #index, #name, live)?)
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
            arrays: &'a [support::ArrayRef],
            live: &support::Live,
        ) -> ::core::result::Result<Self::Columns<'a>, support::Misfit> {
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
        impl support::Batchable for #name {
            fn batcher() -> ::std::sync::Arc<dyn support::Batcher<Self>> {
                ::std::sync::Arc::new(support::ColumnarBatcher::<Self>::new())
            }
        }

        #[automatically_derived]
        impl support::Viewed for #name {
            type View<'a> = support::ColumnarView<'a, Self>;
        }

        #[automatically_derived]
        impl ::core::convert::From<#row<'_>> for #name {
            fn from(row: #row<'_>) -> Self {
                <Self as support::Columnar>::from_row(row)
            }
        }
    }
}
