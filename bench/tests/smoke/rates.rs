//! What is measured over a range: of sizes, of loads, of edges, and of kinds of data.

use super::{keys, smoke, smoke_in_a_process};

#[test]
fn throughput_is_measured_over_the_bytes_of_a_row() {
    let mut cases = smoke("sizes --transport local");
    cases.extend(smoke_in_a_process("sizes --transport shared"));
    cases.extend(smoke_in_a_process("sizes --transport socket"));
    let mut expected = Vec::new();
    for (transport, baseline) in [
        ("local", "bare ring"),
        ("shared", "memfd ring"),
        ("socket", "raw tcp"),
    ] {
        for bytes in [8, 16, 64, 256, 1024, 16_384] {
            expected.push((format!("sizes/{transport}/bytes/{bytes}"), baseline));
        }
    }
    let expected: Vec<(&str, &str)> = expected
        .iter()
        .map(|(name, baseline)| (name.as_str(), *baseline))
        .collect();
    assert_eq!(keys(&cases), expected);
    assert!(cases.iter().all(|case| case.unit == "bytes/s"));
}
