//! The examples of `docs/connectors` and of the cookbook, as a reader would run them.
//! Goal: every job that a page shows runs, and makes what the page says. Method: the files that a
//! page shows are written into a folder of its own, its jobs run there one after the other, and
//! what they wrote is compared with what it shows.
#![allow(clippy::disallowed_methods, reason = "the tests wait for processes")]

mod page;

use page::Page;

/// A test for each page, so that one that fails says which it was.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[test]
            fn $name() {
                Page::read($path).run();
            }
        )*

        #[test]
        fn no_page_is_forgotten() {
            let paths = [$($path),*];
            for entry in std::fs::read_dir(page::docs().join("connectors")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let path = format!("connectors/{name}");
                assert!(paths.contains(&path.as_str()), "{path}");
            }
        }
    };
}

pages! {
    the_jobs_of_the_cookbook_run_and_give_what_it_says: "COOKBOOK.md",
    the_examples_of_the_page_about_arrow_run: "connectors/arrow.md",
    the_examples_of_the_page_about_blackhole_run: "connectors/blackhole.md",
    the_examples_of_the_page_about_csv_run: "connectors/csv.md",
    the_examples_of_the_page_about_generator_run: "connectors/generator.md",
    the_examples_of_the_page_about_ndjson_run: "connectors/ndjson.md",
    the_examples_of_the_page_about_nexmark_run: "connectors/nexmark.md",
    the_examples_of_the_page_about_parquet_run: "connectors/parquet.md",
    the_examples_of_the_page_about_socket_run: "connectors/socket.md",
    the_examples_of_the_page_about_stdin_run: "connectors/stdin.md",
    the_examples_of_the_page_about_stdout_run: "connectors/stdout.md",
}
