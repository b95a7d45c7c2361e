//! What does not compile, and the examples of the page on typed rows.

/// Each example lacks nothing but what its first line says.
///
/// A struct with a column compiles:
/// ```
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { id: i64 }
/// ```
/// A type without a column:
/// ```compile_fail,E0277
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { id: std::time::Duration }
/// ```
/// A struct that derives nothing:
/// ```compile_fail,E0277
/// struct Leg { id: i64 }
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { leg: Leg }
/// ```
/// An option of an option:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { id: Option<Option<i64>> }
/// ```
/// A key that has no order:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { ids: std::collections::BTreeMap<f64, i64> }
/// ```
/// A generic struct:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade<T> { id: T }
/// ```
/// A struct within itself, whose columns would have no end:
/// ```compile_fail,E0072
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { parts: Vec<Trade> }
/// ```
/// An enum:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// enum Trade { Buy { id: i64 } }
/// ```
/// A tuple struct:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade(i64);
/// ```
/// A name that is taken:
/// ```compile_fail
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { event_time: i64 }
/// ```
/// A field that is skipped and has no default:
/// ```compile_fail,E0277
/// struct Leg;
/// #[derive(ringway::batcher::Columnar)]
/// struct Trade { id: i64, #[columnar(skip)] leg: Leg }
/// ```
struct Refused;

#[doc = include_str!("../../../../docs/TYPED_ROWS.md")]
struct Page;
