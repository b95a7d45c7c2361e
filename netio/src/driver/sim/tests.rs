//! What the simulation itself promises.

use super::*;

/// Runs two drivers that send to each other, and writes down all that they tell.
fn story(seed: u64, resets_per_million: u32) -> (Vec<String>, Duration) {
    let network = SimNetwork::new(SimOptions {
        seed,
        resets_per_million,
        ..SimOptions::default()
    });
    let mut drivers = [(), ()].map(|()| SimDriver::new(&network).unwrap());
    let (one, other) = network.pair();
    let ids = [
        drivers[0].attach(one).unwrap(),
        drivers[1].attach(other).unwrap(),
    ];
    let mut queues = [(), ()].map(|()| VecDeque::from(vec![Bytes::from(vec![1; 30_000]); 40]));
    let mut told = Vec::new();
    for _ in 0..400 {
        for ((driver, id), queue) in drivers.iter_mut().zip(ids).zip(&mut queues) {
            driver.set_reading(id, true);
            driver.send(id, queue);
            let mut completions = Vec::new();
            driver.poll(&mut completions).unwrap();
            told.push(format!("{completions:?}"));
        }
        let next = network.next_arrival();
        let step = next.map_or(Duration::from_millis(1), |at| at - network.now());
        network.advance(step);
    }
    (told, network.now())
}

#[test]
fn every_run_of_a_seed_is_the_same_and_seeds_differ() {
    assert_eq!(story(1, 0), story(1, 0));
    assert_ne!(story(1, 0), story(2, 0));
    assert_eq!(story(3, 20_000), story(3, 20_000));
}

#[test]
fn connections_break_where_asked_for_and_each_end_is_told() {
    let lost = |seed| {
        let (told, _) = story(seed, 20_000);
        told.concat().matches("Lost").count()
    };
    assert_eq!([1, 2, 3].map(lost), [2, 2, 2]);
}

#[test]
fn nothing_arrives_before_its_time() {
    let network = SimNetwork::new(SimOptions {
        delay_max: Duration::from_secs(10),
        ..SimOptions::default()
    });
    let listener = network.listen("here").unwrap();
    let mut driver = SimDriver::new(&network).unwrap();
    driver.listen(listener).unwrap();
    let _caller = network.connect("here").unwrap();
    let arrives = network.next_arrival().unwrap();
    let mut completions = Vec::new();
    network.advance(arrives - Duration::from_nanos(1));
    assert_eq!(driver.poll(&mut completions).unwrap(), 0);
    network.advance(Duration::from_nanos(1));
    assert_eq!(driver.poll(&mut completions).unwrap(), 1);
    assert!(network.listen("here").is_err(), "the name is in use");
}

#[test]
fn a_socket_of_another_network_is_refused() {
    let networks = [(), ()].map(|()| SimNetwork::new(SimOptions::default()));
    let mut driver = SimDriver::new(&networks[0]).unwrap();
    let (one, _other) = networks[1].pair();
    assert!(driver.attach(one).is_err());
    assert!(driver.listen(networks[1].listen("there").unwrap()).is_err());
}
