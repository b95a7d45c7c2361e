//! Peers of another user. Who may be let in is a decision of one function, which its unit test
//! holds to this for any user; where this process may become another user, one really comes.

use std::net::{TcpListener, TcpStream};

use arrow::array::RecordBatch;
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{EdgeOptions, Ending, Receiver, Sender, Transport};
use ringway_netio::driver::DriverChoice;
use ringway_tests::conformance::EdgeSubject;
use ringway_tests::conformance::subjects::{RemoteEdge, SHARED};
use ringway_tests::process::{Process, hear, part, tell};
use ringway_tests::within::{LONG, until};
use rustix::process::{Uid, geteuid};
use rustix::thread::set_thread_uid;

use crate::rig::{all, are_all, data};

const NOBODY: u32 = 65_534;

const TEST: &str = "users::a_peer_of_another_user_is_refused_by_name_and_no_other_edge_ends";

fn edge(sharing: Sharing, copies: bool) -> RemoteEdge {
    let mut remote = RemoteOptions::default().sharing(sharing);
    remote.shared.copies = copies;
    RemoteEdge::new("users", DriverChoice::Epoll, remote)
}

fn says(part: &str) -> (Sharing, bool) {
    match part {
        "requires" => (Sharing::Require, false),
        "prefers" => (Sharing::Prefer, false),
        _ => (Sharing::Require, true),
    }
}

/// The sender, as another user where that may be.
fn play(part: &str) {
    let user = hear().unwrap().parse().unwrap();
    if Uid::from_raw(user) != geteuid() {
        // The threads that are made from here on have it.
        set_thread_uid(Uid::from_raw(user)).unwrap();
    }
    let (sharing, copies) = says(part);
    let out = TcpStream::connect(("127.0.0.1", hear().unwrap().parse().unwrap())).unwrap();
    let edge = edge(sharing, copies);
    let mut sender: Sender<RecordBatch> = edge.sender(out, &EdgeOptions::named("users"));
    // It may be refused before, or be told by the end.
    let _ = sender.push(data(0..10));
    until(LONG, "it is decided", || {
        sender.poll_transport().is_some() || sender.is_closed()
    });
    tell("transport", format!("{:?}", sender.poll_transport()));
    tell("why", format!("{:?}", sender.why_not_shared()));
    match sender.push(data(10..20)) {
        Ok(()) => tell("refused", "no"),
        Err(rejected) => tell("refused", rejected.reason),
    }
    let _ = sender.finish_and_wait(LONG);
    // It lives on until it is killed: who is refused goes on to say so on another thread.
    while hear().is_some() {}
}

/// What became of an edge whose sender is of this user: what that told, and this end.
fn run(part: &str, user: u32) -> ([String; 3], Receiver<RecordBatch>, Vec<RecordBatch>, Ending) {
    let mut child = Process::start(TEST, part);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    child.say(user);
    child.say(listener.local_addr().unwrap().port());
    let (sharing, copies) = says(part);
    let back = listener.accept().unwrap().0;
    let mut receiver = edge(sharing, copies).receiver(back, &EdgeOptions::named("users"));
    let (batches, ending) = all(&mut receiver);
    let told = ["transport", "why", "refused"].map(|key| child.next(key));
    (told, receiver, batches, ending)
}

#[test]
fn a_peer_of_another_user_is_refused_by_name_and_no_other_edge_ends() {
    if let Some(part) = part() {
        return play(&part);
    }
    let (mut other_sender, mut other_receiver) =
        SHARED.open::<RecordBatch>(EdgeOptions::named("other"));
    other_sender.push(data(0..10)).unwrap();

    let own = geteuid().as_raw();
    // Who is not root can't become another user: then the peer is of this one, and let in.
    let user = if geteuid().is_root() { NOBODY } else { own };
    let is_same = user == own;
    println!("the peer is of user {user}, this process of {own}");

    let ([transport, _, refused], receiver, batches, ending) = run("requires", user);
    if is_same {
        assert_eq!(transport, format!("{:?}", Some(Transport::Shared)));
        are_all(&batches, 20);
    } else {
        let said = format!("the other end is of user {own}");
        assert!(refused.contains("no shared memory"), "{refused}");
        assert!(
            refused.contains(&said) && refused.contains("users"),
            "{refused}"
        );
        assert!(batches.is_empty());
        let Ending::Failed(failure) = ending else {
            panic!("failed, not {ending}");
        };
        assert!(
            failure.to_string().contains("no shared memory"),
            "{failure}"
        );
        assert_ne!(receiver.transport(), Transport::Shared);
    }

    let ([transport, why, _], receiver, batches, ending) = run("prefers", user);
    assert_eq!(ending, Ending::End);
    are_all(&batches, 20);
    if !is_same {
        assert_eq!(transport, format!("{:?}", Some(Transport::Socket)));
        assert!(why.contains("the other end is of user"), "{why}");
        assert_eq!(receiver.transport(), Transport::Socket);
    }

    // Where both ends copy, anybody may come.
    let ([transport, ..], receiver, batches, ending) = run("copies", user);
    assert_eq!(ending, Ending::End);
    are_all(&batches, 20);
    assert_eq!(transport, format!("{:?}", Some(Transport::Shared)));
    assert_eq!(receiver.transport(), Transport::Shared);

    other_sender.push(data(10..20)).unwrap();
    other_sender.finish().unwrap();
    let (batches, ending) = all(&mut other_receiver);
    assert_eq!(ending, Ending::End);
    are_all(&batches, 20);
}
