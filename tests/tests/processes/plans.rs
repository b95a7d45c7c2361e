//! What a plan says of processes.

use ringway::batch::{Row, Rows};
use ringway::connect::Collected;
use ringway::edge::Transport;
use ringway::job::{Job, Plan, PlanError, PlanOptions};
use ringway::partition::Parallelism;

fn options(processes: usize, parallelism: u32, workers: usize) -> PlanOptions {
    PlanOptions {
        processes,
        parallelism: Parallelism::new(parallelism).unwrap(),
        workers: vec![None; workers],
        ..PlanOptions::default()
    }
}

/// A source, a chain behind a shuffle, and a sink with one subtask.
fn job(name: &str) -> Job {
    let job = Job::new(name);
    let numbers = job.rows("numbers", 0..10_i64).batched();
    numbers
        .key_by(|n: &i64| *n)
        .process("keep", |_, _| {
            Ok(ringway::operators::rows::Filter::new(|_: &i64| true))
        })
        .batched()
        .parallelism(Parallelism::new(4).unwrap())
        .rebalance()
        .sink("collect", Collected::new().sink());
    job
}

#[test]
fn subtasks_are_spread_over_processes_and_the_workers_of_each() {
    let plan = Plan::new(job("spread").into_graph(), &options(2, 4, 2)).unwrap();
    let of = |name: &str| {
        let mut chains = plan.chains.iter();
        let chain = chains.find(|chain| chain.names[0] == name).unwrap();
        (chain.processes.clone(), chain.workers.clone())
    };
    assert_eq!(of("numbers"), (vec![0], vec![0]));
    assert_eq!(of("keep"), (vec![0, 0, 1, 1], vec![1, 0, 0, 1]));
    assert_eq!(of("collect"), (vec![0, 0, 1, 1], vec![1, 0, 0, 1]));
    assert_eq!((plan.tasks_in(0), plan.tasks_in(1)), (5, 4));
    let [first, second] = &plan.links[..] else {
        panic!("two links")
    };
    assert_eq!((first.edges, first.edges_between), (4, 2));
    assert_eq!((second.edges, second.edges_between), (16, 8));
    assert_eq!(second.transport, None, "shared memory or a socket");
    assert_eq!((first.first_edge, second.first_edge), (0, 4));
    assert_eq!(second.edge_number(3, 3, 4), 19);
}

#[test]
fn a_forward_stream_stays_in_its_process() {
    let job = Job::new("fork");
    let numbers = job
        .source("numbers", |_| {
            Ok(ringway::connect::MemorySource::new([
                ringway::element::StreamElement::Data(Rows::from(vec![Row::untimed(1_i64)])),
            ]))
        })
        .parallelism(Parallelism::new(2).unwrap());
    for name in ["a", "b", "c"] {
        numbers.clone().sink(name, Collected::new().sink());
    }
    let plan = Plan::new(job.into_graph(), &options(3, 2, 1)).unwrap();
    for chain in &plan.chains {
        assert_eq!(chain.processes, [0, 1], "{:?}", chain.names);
    }
    for link in &plan.links {
        assert_eq!(
            (link.edges_between, link.transport),
            (0, Some(Transport::Local))
        );
    }
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning.contains("process 2"))
    );
}

#[test]
fn rows_without_a_batcher_do_not_go_from_process_to_process() {
    let job = Job::new("opaque");
    job.rows("numbers", 0..10_i64)
        .rebalance()
        .sink("collect", Collected::new().sink());
    let graph = job.into_graph();
    let Err(error) = Plan::new(graph, &options(2, 2, 1)) else {
        panic!("it cannot be planned")
    };
    let PlanError::NoCodec { from, to, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((from.as_str(), to.as_str()), ("numbers", "collect"));
    assert!(error.to_string().contains("batched()"), "{error}");
}

#[test]
fn the_hash_is_the_same_wherever_the_plan_is_made_and_differs_where_the_job_does() {
    let hash = |job: Job, processes, parallelism, workers| {
        let options = options(processes, parallelism, workers);
        Plan::new(job.into_graph(), &options).unwrap().hash
    };
    let own = hash(job("a"), 2, 4, 1);
    assert_eq!(own, hash(job("a"), 2, 4, 3), "workers may differ");
    assert_ne!(own, hash(job("b"), 2, 4, 1));
    assert_ne!(own, hash(job("a"), 3, 4, 1));
    assert_ne!(own, hash(job("a"), 2, 3, 1));
    let noted = job("a").into_graph();
    let mut noted = noted;
    noted.note(b"a file of 3 bytes");
    assert_ne!(own, Plan::new(noted, &options(2, 4, 1)).unwrap().hash);
    let renamed = job("a").into_graph();
    let mut renamed = renamed;
    let node = renamed.nodes().next().unwrap().0;
    renamed[node].uid = Some("other".to_owned());
    assert_ne!(own, Plan::new(renamed, &options(2, 4, 1)).unwrap().hash);
}

#[test]
fn a_node_can_say_its_process() {
    let mut graph = job("pinned").into_graph();
    let sink = graph.nodes().last().unwrap().0;
    graph[sink].process = Some(1);
    let plan = Plan::new(graph, &options(2, 2, 1)).unwrap();
    assert_eq!(plan.chains.last().unwrap().processes, [1, 1]);
    let mut graph = job("pinned").into_graph();
    graph[sink].process = Some(2);
    let Err(error) = Plan::new(graph, &options(2, 2, 1)) else {
        panic!("there is no process 2")
    };
    assert_eq!(
        error.to_string(),
        "collect is to run in process 2, but the job has 2, from 0"
    );
    let Err(PlanError::Processes { processes: 0 }) =
        Plan::new(job("none").into_graph(), &options(0, 1, 1))
    else {
        panic!("no process can run it")
    };
}
