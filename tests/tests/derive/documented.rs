//! A struct as a library shows it to others: all that the derive makes of it is public, and has
//! documentation, or this would not compile.

use ringway::batcher::Columnar;

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
