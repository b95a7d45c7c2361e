//! What both halves of an edge say of what carries it.

use super::{Receiver, Sender, Transport, remote};
use crate::batch::Payload;

macro_rules! carried {
    ($half:ident) => {
        impl<B: Payload> $half<B> {
            /// Elements queued now.
            pub fn len(&self) -> usize {
                each!(self, edge => edge.len())
            }

            /// Whether nothing is queued.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Data elements that the edge holds at most.
            pub fn capacity(&self) -> usize {
                each!(self, edge => edge.options().capacity_elements)
            }

            /// The edge's name, as errors and metrics give it.
            pub fn name(&self) -> &str {
                each!(self, edge => &edge.options().name)
            }

            /// What carries the edge. A connection of which it is not known yet whether it leads
            /// to shared memory is a socket: see [`poll_transport`](Self::poll_transport).
            pub fn transport(&self) -> Transport {
                match self {
                    Self::Local(_) => Transport::Local,
                    Self::Remote(edge) => edge.transport(),
                    Self::Shared(_) => Transport::Shared,
                }
            }

            /// As [`transport`](Self::transport), but nothing as long as it is not known whether
            /// both ends are on one host: no element has arrived before that.
            pub fn poll_transport(&mut self) -> Option<Transport> {
                self.upgrade();
                match self {
                    Self::Remote(edge) if edge.is_undecided() => None,
                    _ => Some(self.transport()),
                }
            }

            /// Why the edge does not go over shared memory, though that was wanted where it can.
            pub fn why_not_shared(&self) -> Option<&str> {
                match self {
                    Self::Remote(edge) => edge.why_connection(),
                    Self::Local(_) | Self::Shared(_) => None,
                }
            }

            /// What the connection has done, where there is one.
            pub fn remote_stats(&self) -> Option<remote::RemoteStats> {
                match self {
                    Self::Local(_) => None,
                    Self::Remote(edge) => Some(edge.remote_stats()),
                    Self::Shared(edge) => Some(edge.remote_stats()),
                }
            }
        }
    };
}

carried!(Sender);
carried!(Receiver);
