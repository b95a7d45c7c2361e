//! The edges that are held to the promises.

use ringway::batch::Payload;
use ringway::data_plane::{DataPlane, ListenOptions};
use ringway::edge::{EdgeOptions, Receiver, Sender, local};
use ringway_shm::Bell;

use super::{EdgeSubject, Waiting};
use crate::block_on::block_on;

/// A local edge, opened directly.
pub struct LocalEdge;

/// A local edge, opened by listening and connecting.
pub struct RegisteredEdge;

/// An edge whose halves are awaited, where they wait.
pub struct AwaitedEdge<S>(pub S);

impl EdgeSubject for LocalEdge {
    fn name(&self) -> &'static str {
        "local edge"
    }

    fn open_with<B: Payload>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        local::open(options, sender_bell, receiver_bell)
    }
}

impl EdgeSubject for RegisteredEdge {
    fn name(&self) -> &'static str {
        "local edge from the registry"
    }

    fn open_with<B: Payload>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        let plane = DataPlane::new();
        let options = ListenOptions::new("0.0.0.0", 0).edge(options);
        let listener = plane.listen_local(options, receiver_bell);
        let listener = listener.expect("a free port");
        let sender = plane.connect_local("localhost", listener.port(), sender_bell);
        let sender = sender.expect("it listens");
        (sender, listener.accept().expect("a sender connected"))
    }
}

impl<S: EdgeSubject> EdgeSubject for AwaitedEdge<S> {
    fn name(&self) -> &'static str {
        "an edge that is awaited"
    }

    fn open_with<B: Payload>(
        &self,
        options: EdgeOptions,
        sender_bell: Bell,
        receiver_bell: Bell,
    ) -> (Sender<B>, Receiver<B>) {
        self.0.open_with(options, sender_bell, receiver_bell)
    }

    fn waiting<B: Payload>(&self) -> Waiting<B> {
        Waiting {
            push: |sender, element| block_on(sender.push_async(element)),
            pop: |receiver| block_on(receiver.pop_async()),
        }
    }
}
