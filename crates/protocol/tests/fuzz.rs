//! Runs every fuzz target briefly. For longer runs, use `cargo fuzz` (see `fuzz/`).

#[path = "fuzz/checks.rs"]
mod checks;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ROUNDS: usize = 20_000;

const ENVELOPES: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1.0,"y":[1,2,{"z":null}]},"_meta":{"progressToken":"t","io.modelcontextprotocol/logLevel":"info"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061"}}"#,
    r#"{"jsonrpc":"2.0","id":"x","result":{"content":[],"big":123456789012345678901234567890}}"#,
    r#"{"jsonrpc":"2.0","id":-3,"error":{"code":-32601,"message":"no \" such","data":{"a":[]}}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},7]"#,
    r#"{"id":1,"jsonrpc":"2.0","method":"m","params":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}"#,
    " \n{\"jsonrpc\":\"2.0\" , \"id\" : 0 , \"method\" : \"\\u0070ing\" }",
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":[[[[[[]]]]]]}"#,
];
const HEADERS: [&str; 4] = [
    "us-west1",
    "=?base64?SGVsbG8sIOS4lueVjA==?=",
    " padded ",
    "=?base64?",
];
const EVENT_IDS: [&str; 4] = [
    "0-0-0",
    "1f-3-ff",
    "ffffffff-ffffffff-ffffffffffffffff",
    "01-2-3",
];

fn mutate(rng: &mut StdRng, seeds: &[&str]) -> Vec<u8> {
    let mut data = seeds[rng.random_range(0..seeds.len())].as_bytes().to_vec();
    for _ in 0..rng.random_range(0..6) {
        if data.is_empty() {
            data.push(rng.random());
        }
        let at = rng.random_range(0..data.len());
        let end = (at + rng.random_range(0..12)).min(data.len());
        match rng.random_range(0..6) {
            0 => data[at] ^= 1 << rng.random_range(0..8),
            1 => data[at] = b"{}[]\",:\\ 0-e.u"[rng.random_range(0..14)],
            2 => drop(data.drain(at..end)),
            3 => {
                let piece = data[at..end].to_vec();
                data.splice(at..at, piece);
            }
            4 => {
                let other = seeds[rng.random_range(0..seeds.len())].as_bytes();
                let from = rng.random_range(0..=other.len());
                data.splice(at..at, other[from..].iter().copied().take(20));
            }
            _ => data.truncate(at),
        }
    }
    data
}

fn run(name: &str, seeds: &[&str], check: fn(&[u8])) {
    for seed in seeds {
        check(seed.as_bytes());
    }
    let mut rng = StdRng::seed_from_u64(20_260_728);
    for round in 0..ROUNDS {
        let data = mutate(&mut rng, seeds);
        let outcome = std::panic::catch_unwind(|| check(&data));
        assert!(
            outcome.is_ok(),
            "{name}, round {round}: {:?}",
            String::from_utf8_lossy(&data)
        );
    }
}

#[test]
fn envelope() {
    run("envelope", &ENVELOPES, checks::envelope);
}

#[test]
fn headers() {
    run("headers", &HEADERS, checks::headers);
}

#[test]
fn event_id() {
    run("event_id", &EVENT_IDS, checks::event_id);
}

#[test]
fn sealed_state() {
    run(
        "sealed_state",
        &[
            "",
            "AQ",
            "\u{0}\u{1}",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ],
        checks::sealed_state,
    );
}

#[test]
fn sse() {
    let seeds = [
        "\u{3}id: 1\ndata: {}\n\n",
        "\u{1}data: a\r\ndata: b\r\n\r\n: still there\n\nretry: 5\n\n",
        "\u{7}\u{feff}event: x\rdata\r\r",
    ];
    run("sse", &seeds, checks::sse);
}

#[test]
fn trace_context() {
    let seeds = [
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\na=b,c=d",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
    ];
    run("trace_context", &seeds, checks::trace_context);
}
