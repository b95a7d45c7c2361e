fn main() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let path = std::env::args().nth(1).unwrap();
    let job = ringway::job::file::LoadedJob::load(path.as_ref(), &Default::default());
    let job = match job { Ok(j) => j, Err(e) => { eprintln!("{e}"); std::process::exit(2) } };
    let plan = ringway::job::Plan::new(job.graph, &job.options.plan_options(vec![None, None])).unwrap();
    let handle = ringway::job::start(&plan, &Default::default()).unwrap();
    let report = handle.wait();
    println!("{report:#?}");
}
