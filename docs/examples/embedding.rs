//! An asynchronous service in front of a thread that computes.
//!
//! Tasks of tokio read lines from TCP connections and send them, as typed rows with event times,
//! over one edge each to a thread, which merges them and sends a running count by word back over
//! another edge. Back-pressure needs nothing more: a slow thread makes the tasks wait, and a
//! task that waits reads nothing from its connection.
//!
//! Run with `cargo run -p ringway --example embedding`: it connects to itself.

use std::collections::BTreeMap;
use std::error::Error;
use std::thread;

use ringway::batch::{Row, Rows};
use ringway::edge::{Bell, EdgeOptions, Ending, Popped, Receiver, Sender, local};
use ringway::element::StreamElement;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

type Words = Rows<String>;
type Counts = Rows<(String, u64)>;

const CLIENTS: i64 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;

    // The thread sleeps on one bell for all its receivers; each task has a bell of its own.
    let bell = Bell::thread();
    let mut inputs = Vec::new();
    for client in 0..CLIENTS {
        let options = EdgeOptions::named(format!("connection[{client}] -> count")).capacity(16);
        let (words, input) = local::open(options, Bell::thread(), bell.clone());
        inputs.push(input);
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(b"to be\nor not\nto be\n").await
        });
        let (stream, _) = listener.accept().await?;
        tokio::spawn(read(stream, words));
    }
    let (output, mut counts) = local::pair(EdgeOptions::named("count -> main"));
    let counting = thread::spawn(move || count(&bell, inputs, output));

    let mut last = BTreeMap::new();
    loop {
        match counts.pop_async().await {
            Popped::Element(StreamElement::Data(rows)) => {
                last.extend(rows.into_vec().into_iter().map(|row| row.value));
            }
            Popped::Element(_) | Popped::Empty => {}
            Popped::Ended(Ending::End) => break,
            Popped::Ended(ending) => return Err(ending.to_string().into()),
        }
    }
    counting.join().unwrap();
    println!("{last:?}");
    assert_eq!(last["be"], 2 * CLIENTS as u64);
    assert_eq!(last["not"], CLIENTS as u64);
    Ok(())
}

/// Sends the words of each line, and the end when the connection is closed.
async fn read(stream: TcpStream, mut words: Sender<Words>) {
    let mut lines = BufReader::new(stream).lines();
    loop {
        let rows: Words = match lines.next_line().await {
            Ok(Some(line)) => line
                .split(' ')
                .map(|word| Row::untimed(word.into()))
                .collect(),
            Ok(None) => break,
            Err(error) => return words.fail(error.to_string()),
        };
        if words.push_async(StreamElement::Data(rows)).await.is_err() {
            return;
        }
    }
    // If the receiver went before, it has said why to its own task.
    let _ = words.finish();
}

/// Counts the words of all inputs until all have ended.
fn count(bell: &Bell, mut inputs: Vec<Receiver<Words>>, mut output: Sender<Counts>) {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while !inputs.is_empty() {
        bell.arm();
        let mut words = Vec::new();
        let mut failed = None;
        inputs.retain_mut(|input| match input.try_pop() {
            Popped::Element(StreamElement::Data(rows)) => {
                words.extend(rows.into_vec());
                true
            }
            Popped::Element(_) | Popped::Empty => true,
            Popped::Ended(Ending::End) => false,
            Popped::Ended(ending) => {
                failed = Some(ending);
                false
            }
        });
        if let Some(ending) = failed {
            return output.fail(ending.to_string());
        }
        if words.is_empty() && !inputs.is_empty() {
            bell.park(None);
            continue;
        }
        bell.disarm();
        let changed: Counts = words
            .into_iter()
            .map(|word| {
                let count = counts.entry(word.value.clone()).or_default();
                *count += 1;
                Row::untimed((word.value, *count))
            })
            .collect();
        if output.push(StreamElement::Data(changed)).is_err() {
            return;
        }
    }
    let _ = output.finish();
}
