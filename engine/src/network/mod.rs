//! The pair for embedders that bridge their own operators over an edge: a sink that sends where
//! a source listens.
//!
//! A source is opened in two steps, so that its port can be told to its sender in between:
//! [`NetworkSource::prepare_listen`], then [`NetworkSource::open`]. A bridge carries every
//! element as it is, drain markers too, and never makes one up: what comes out is what went in.
//!
//! Every call has a form that waits, one that does not, and one that is awaited; each half
//! belongs to one thread or task at a time. [`Counters`] tell what has gone through.
//!
//! ```
//! use std::time::Duration;
//! use ringway::batch::{Row, Rows};
//! use ringway::data_plane::{ConnectOptions, DataPlane, ListenOptions, TransportChoice};
//! use ringway::edge::{Ending, Popped};
//! use ringway::element::StreamElement;
//! use ringway::network::{NetworkSink, NetworkSource};
//!
//! let options = ListenOptions::new("127.0.0.1", 0).transport(TransportChoice::Socket);
//! let mut source = NetworkSource::<Rows<i64>>::new(DataPlane::new(), options);
//! let port = source.prepare_listen()?;
//!
//! let options = ConnectOptions::default().transport(TransportChoice::Socket);
//! let mut sink = NetworkSink::<Rows<i64>>::new(DataPlane::new(), "127.0.0.1", port, options);
//! sink.open()?;
//! source.open(Some(Duration::from_secs(10)))?;
//!
//! let rows = StreamElement::Data(Rows::from(vec![Row::at(1_000, 42)]));
//! sink.push(rows.clone())?;
//! assert_eq!(source.produce(), Popped::Element(rows));
//! sink.close(Duration::from_secs(10))?;
//! assert_eq!(source.produce(), Popped::Ended(Ending::End));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod sink;
mod source;

pub use counters::Counters;
pub use sink::NetworkSink;
pub use source::{NetworkSource, OpenError};
