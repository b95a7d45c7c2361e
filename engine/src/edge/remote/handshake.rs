//! A connection that has yet to show which edge it is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ringway_netio::driver::Socket;
use ringway_netio::frame::{Reason, ReasonCode};
use ringway_netio::session::{HangUp, ReceiverSession};

use super::edge_port::{Adopt, Answer, State, lock};
use super::inflow::Inflow;
use super::leaving::Leaving;
use super::links::{Event, Io, Link};
use super::open::Adopted;
use super::outflow::Outflow;
use crate::edge::shared::Door;

/// A session that is handed over, with what was read, as soon as its peer has shown who it is.
pub(super) struct Handshake {
    /// Nothing once it was handed over.
    session: Option<ReceiverSession<Bytes>>,
    door: Option<Door>,
    inflow: Inflow,
    outflow: Outflow,
    peer: String,
    state: Arc<Mutex<State>>,
    _counted: Arc<()>,
    /// Until then an edge that nobody expects may come to be expected.
    until: Duration,
    overtaking: bool,
    phase: Phase,
    leaving: Leaving,
    peer_has_ended: bool,
    broken: Option<String>,
}

enum Phase {
    /// It has not shown who it is, or nobody expects it yet.
    Waiting,
    /// It is on its way to this edge.
    Detaching(u64, Adopt),
    /// It was refused.
    Refused,
    /// It is with its edge.
    Gone,
}

impl Handshake {
    pub(super) fn new(
        session: ReceiverSession<Bytes>,
        door: Option<Door>,
        peer: String,
        state: Arc<Mutex<State>>,
        counted: Arc<()>,
        until: Duration,
        overtaking: bool,
    ) -> Self {
        Self {
            session: Some(session),
            door,
            inflow: Inflow::default(),
            outflow: Outflow::default(),
            peer,
            state,
            _counted: counted,
            until,
            overtaking,
            phase: Phase::Waiting,
            leaving: Leaving::default(),
            peer_has_ended: false,
            broken: None,
        }
    }

    /// Looks for who the peer is.
    fn look(&mut self, io: &mut Io<'_>) -> usize {
        let Some(session) = &mut self.session else {
            return 0;
        };
        let fed = match session.identity() {
            // What follows is for the edge.
            Some(_) => 0,
            None => self.inflow.feed(session, io, |_| false),
        };
        if self.peer_has_ended && session.end().is_none() && session.identity().is_none() {
            match &self.broken {
                Some(why) => session.handle_lost(why),
                None => session.handle_eof(),
            }
        }
        session.handle_timeout(io.now);
        if let Some(Err(error)) = session.end() {
            let why = error.to_string();
            return self.refused(&why);
        }
        let Some(edge) = session.identity().map(|identity| identity.edge) else {
            return fed;
        };
        let answer = lock(&self.state).answer(edge);
        match answer {
            Answer::Take(adopt) => {
                self.phase = Phase::Detaching(edge, adopt);
                io.driver.detach(io.connection);
                1
            }
            Answer::Later if io.now < self.until => fed,
            Answer::Later => self.refuse(&format!("edge {edge} is not expected here")),
            Answer::Never(why) => self.refuse(&format!("edge {edge}: {why}")),
        }
    }

    fn refuse(&mut self, why: &str) -> usize {
        if let Some(session) = &mut self.session {
            session.abort(Reason::new(ReasonCode::WrongPeer, why));
        }
        self.refused(why)
    }

    fn refused(&mut self, why: &str) -> usize {
        lock(&self.state).count_refused(&self.peer, why);
        self.phase = Phase::Refused;
        1
    }

    fn transmit(&mut self, io: &mut Io<'_>) -> usize {
        let Some(session) = &mut self.session else {
            return 0;
        };
        if self.outflow.wants_more() {
            self.outflow.append(|out, _| {
                let before = out.len();
                session.poll_transmit(out);
                out.len() - before
            });
        }
        usize::from(self.outflow.send(io, |_| 0))
    }

    fn hang_up(&mut self, io: &mut Io<'_>) {
        if !self.outflow.is_empty() && self.broken.is_none() {
            return;
        }
        let hang_up = self
            .session
            .as_mut()
            .and_then(ReceiverSession::poll_hang_up);
        match hang_up {
            Some(HangUp::Both) if self.broken.is_some() => self.leaving.finish(io),
            Some(HangUp::Both) => self.leaving.begin(io, self.peer_has_ended),
            Some(HangUp::Write) | None => {}
        }
    }
}

impl Link for Handshake {
    fn handle(&mut self, event: Event, io: &mut Io<'_>) {
        match event {
            Event::Sent(bytes) => self.outflow.handle_sent(bytes),
            Event::Read(_) if self.leaving.has_begun() => {}
            Event::Read(chunk) => self.inflow.push(chunk),
            Event::Eof => self.peer_has_ended = true,
            Event::Lost(why) => {
                self.peer_has_ended = true;
                self.broken = Some(why);
                self.outflow.clear();
                match std::mem::replace(&mut self.phase, Phase::Gone) {
                    Phase::Detaching(edge, adopt) => {
                        lock(&self.state).put_back(edge, adopt);
                        self.leaving.finish(io);
                    }
                    phase => self.phase = phase,
                }
            }
            // No body is begun here.
            Event::BodyProgress(_) | Event::Body(..) => {}
        }
    }

    fn pump(&mut self, io: &mut Io<'_>) -> usize {
        if self.leaving.has_begun() {
            return usize::from(self.leaving.poll(io, self.peer_has_ended));
        }
        let mut work = self.transmit(io);
        if matches!(self.phase, Phase::Waiting) {
            io.driver
                .set_reading(io.connection, !self.inflow.is_blocked());
            work += self.look(io);
            work += self.transmit(io);
        }
        if matches!(self.phase, Phase::Refused) {
            self.hang_up(io);
        }
        work
    }

    fn timeout(&self) -> Option<Duration> {
        if self.leaving.has_begun() {
            return self.leaving.timeout();
        }
        let session = self.session.as_ref()?;
        let known = session.identity().map(|_| self.until);
        known.or_else(|| session.poll_timeout())
    }

    fn is_needed(&self) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        self.leaving.is_gone()
    }

    fn detached(&mut self, socket: Socket) {
        let session = self.session.take();
        let phase = std::mem::replace(&mut self.phase, Phase::Gone);
        if let (Some(session), Phase::Detaching(_, adopt)) = (session, phase) {
            lock(&self.state).count_connected();
            adopt(Ok(Adopted {
                socket,
                door: self.door.take(),
                session,
                unread: self.inflow.take_unread(),
                peer: self.peer.clone(),
                overtaking: self.overtaking,
            }));
        }
    }
}
