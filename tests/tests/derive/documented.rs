//! A struct as a library shows it to others: all that the derive makes of it is public, and has
//! documentation, or this would not compile.

use ringway::batcher::Columnar;

use crate::identity::round_trip;

/// A place.
#[derive(Clone, Debug, PartialEq, Columnar)]
pub struct Place {
    /// How it is called.
    pub name: String,
    /// Where it lies.
    pub position: Position,
}

/// Where something lies.
#[derive(Clone, Debug, PartialEq, Columnar)]
pub struct Position {
    /// Degrees to the north.
    pub north: f64,
    /// Degrees to the east.
    pub east: f64,
}

/// A struct with a part that others do not see.
#[derive(Clone, Debug, PartialEq, Columnar)]
pub struct Opaque {
    hidden: Hidden,
    maybe: Option<Vec<Hidden>>,
}

#[derive(Clone, Debug, PartialEq, Columnar)]
struct Hidden {
    number: i64,
}

/// Names that the derived code might use for itself.
mod support {
    #[derive(Clone, Debug, PartialEq, ringway::batcher::Columnar)]
    pub(super) struct Money {
        pub(super) cents: i64,
    }
}

#[derive(Clone, Debug, PartialEq, Columnar)]
struct Named {
    money: support::Money,
    row: i64,
    rows: Vec<i64>,
    columns: String,
    values: u8,
    writers: u8,
    live: bool,
    arrays: bool,
    r#as: Price,
}

/// The derive sees a name, and the compiler the type behind it.
type Price = f64;

#[test]
fn names_of_the_user_are_not_mistaken_for_those_of_the_derive() {
    let named = Named {
        money: support::Money { cents: 1 },
        row: 2,
        rows: vec![3],
        columns: "4".into(),
        values: 5,
        writers: 6,
        live: true,
        arrays: false,
        r#as: 7.0,
    };
    let opaque = Opaque {
        hidden: Hidden { number: 1 },
        maybe: Some(vec![Hidden { number: 2 }]),
    };
    assert_eq!(round_trip(vec![named.clone()]), [named]);
    assert_eq!(round_trip(vec![opaque.clone()]), [opaque]);
}
