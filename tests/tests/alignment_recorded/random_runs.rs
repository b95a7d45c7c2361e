//! Random runs that were recorded.

use std::collections::{BTreeMap, BTreeSet};

use ringway::align::AlignFact;

use super::recorded;
use super::script::{Answer, Line, Machine, parse};

/// One run of our own, so that the rules are tried where no recorded runs are at hand. Its
/// `close` is answered with the defect.
const OWN_RUN: &str = "\
new 2 => ok
barrier 0 1 0 1 => forward barrier 1 terminal=0 mode=1 unaligned_first=1
wm 0 5 => none
close 1 => forward barrier 1 terminal=0 mode=1 unaligned_first=0
refresh => forward wm 5
barrier 0 2 => forward barrier 2 terminal=0 mode=0 unaligned_first=0
state => paused=01 closed=01 all_closed=0 current=5
";

#[test]
fn random_runs_get_the_recorded_answers_but_for_the_named_defects() {
    assert_eq!(check(OWN_RUN), (7, 1));
    if let Some(text) = recorded("alignment_disciplined.txt") {
        let (lines, departed) = check(&text);
        assert!(
            departed * 100 < lines,
            "{departed} of {lines} are not exceptions"
        );
    }
}

/// Replays runs. Returns the number of answers, and how many depart from the recorded one.
fn check(text: &str) -> (usize, usize) {
    let mut machine = Machine::new(1);
    let mut run = RandomRun::default();
    let mut departures: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = 0;
    for line in parse(text) {
        lines += 1;
        if line.command.starts_with("new") {
            run = RandomRun {
                single_input: line.command == "new 1",
                ..RandomRun::default()
            };
        }
        let answer = machine.run(&line.command);
        run.note_forwards(&answer);
        if answer.forwards() != line.answer {
            let Some(defect) = run.defect(&line, &answer) else {
                panic!(
                    "line {}: {} => {}",
                    line.number,
                    line.command,
                    answer.in_full()
                );
            };
            *departures.entry(defect).or_default() += 1;
        }
    }
    println!("{lines} answers, departures: {departures:#?}");
    (lines, departures.values().sum())
}

/// What the rules for exceptions need to know of a random run.
#[derive(Default)]
struct RandomRun {
    single_input: bool,
    unaligned_forwarded: BTreeSet<u64>,
    forwarded_again: bool,
}

impl RandomRun {
    fn note_forwards(&mut self, answer: &Answer) {
        let Answer::Facts(facts) = answer else {
            return;
        };
        for fact in facts {
            match fact {
                AlignFact::Forward {
                    barrier,
                    unaligned_first: true,
                    ..
                } => {
                    assert!(
                        self.unaligned_forwarded.insert(barrier.id),
                        "forwarded twice"
                    );
                }
                AlignFact::Forward { .. }
                | AlignFact::RecordingsClosed { .. }
                | AlignFact::Released { .. } => {}
                other => panic!("nothing in these runs is out of step, yet: {other:?}"),
            }
        }
    }

    /// The defect that explains a recorded answer which is not ours, if one does.
    fn defect(&mut self, line: &Line, ours: &Answer) -> Option<&'static str> {
        let words: Vec<&str> = line.command.split_whitespace().collect();
        match words[0] {
            "close" => {
                let id = line.answer.strip_prefix("forward barrier ")?;
                let (id, rest) = id.split_once(' ')?;
                let again = self.unaligned_forwarded.contains(&id.parse().ok()?)
                    && rest == "terminal=0 mode=1 unaligned_first=0";
                self.forwarded_again |= again;
                (again && ours.forwards() == "none")
                    .then_some("D4: the end of an input forwards again")
            }
            // Alone on its input an unaligned id is over at once: it is asked for like an
            // unknown one, of every open input.
            "pending" => {
                let over = self.unaligned_forwarded.contains(&words[1].parse().ok()?);
                (self.single_input
                    && over
                    && line.answer == "pending"
                    && ours.in_full() == "pending 0")
                    .then_some("D4: unaligned ids of a single input are never forgotten")
            }
            // Forwarding again also released inputs that wait for another id.
            "state" => {
                let ours = ours.in_full();
                let (our_paused, our_rest) = ours.split_once(' ')?;
                let (paused, rest) = line.answer.split_once(' ')?;
                let ours_waits_more = paused.bytes().zip(our_paused.bytes()).all(|(a, b)| a <= b);
                (self.forwarded_again && our_rest == rest && ours_waits_more)
                    .then_some("D4: forwarding again releases inputs that wait for another id")
            }
            _ => None,
        }
    }
}
