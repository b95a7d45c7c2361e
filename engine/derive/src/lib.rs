//! `#[derive(Columnar)]`, which the crate `ringway` re-exports from `ringway::batcher`.
#![forbid(unsafe_code)]

mod generate;
mod input;
mod types;

use input::Input;
use proc_macro::TokenStream;

/// Makes the fields of a struct the columns of a batch.
///
/// A batch has `event_time` as column 0, int64 and nullable, then a column for each field, in
/// the order of their declaration and under their names. What a field may be, and what its
/// column is, stands at `FieldType`. For a struct `Trade` the derive
///
/// - implements `Columnar` and `Batchable`, so that `choose_batcher` finds the batcher, and
///   `Trade` may be a field of another struct,
/// - makes `TradeRef<'a>`, a row borrowed from a batch, with the fields of `Trade`: a number is
///   itself, text is `&str`, a list a `ListRef`, a struct its own `…Ref`. `Trade::from` makes it
///   a value of its own,
/// - makes `TradeColumns<'a>`, the columns with the fields of `Trade`: numbers are slices,
/// - names `TradeView<'a>` the view over a batch, and implements `Viewed`.
///
/// What it makes is as visible as the struct, and its fields as those of the struct.
///
/// # Attributes of a field
///
/// - `#[columnar(rename = "name")]` gives the column another name.
/// - `#[columnar(skip)]` leaves the field out; parsing gives it its `Default`.
///
/// # What is refused
///
/// Enums, unions, tuple structs, structs without a column or with more than 64, generic
/// structs, two columns of one name, a column named `event_time`, and fields of a type that has
/// no column. The error points at the place.
#[proc_macro_derive(Columnar, attributes(columnar))]
pub fn columnar(input: TokenStream) -> TokenStream {
    let expanded = syn::parse(input)
        .and_then(Input::of)
        .map(|input| generate::all(&input));
    expanded
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}
