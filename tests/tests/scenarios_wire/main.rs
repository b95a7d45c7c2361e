//! Failures that others met on their connections, played on edges over sockets.
//!
//! Goal: whatever becomes of a connection, of its peer or of the bytes on it, an edge loses and
//! repeats nothing, says what happened, and disturbs no other. Method: edges over loopback
//! connections, over epoll and the best driver of the host, in both forms of the wire; peers
//! that write bytes by hand; and processes of their own, where one is to die or to be measured.
//! Each test is one scenario; its name begins with the scenario's number.

mod connections;
mod flow;
mod late;
mod loss;
mod mesh;
mod peers;
mod rig;
mod sockets;
