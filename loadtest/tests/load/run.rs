use std::process::{Command, Output};

use serde_json::Value;

use crate::common::{LOADTEST, file, said};
use crate::server::{self, Fault};

pub(crate) async fn loadtest(arguments: Vec<String>) -> Output {
    let run = move || Command::new(LOADTEST).args(arguments).output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}

pub(crate) async fn load(fault: Fault, mode: &str, more: &str) -> (Output, Option<Value>) {
    load_for("1s", fault, mode, more).await
}

/// Each repetition runs for longer, because on a busy machine a second may have few calls.
pub(crate) async fn load_until(
    enough: impl Fn(&Output, &Value) -> bool,
    fault: Fault,
    mode: &str,
    more: &str,
) -> (Output, Value) {
    for time in ["1s", "5s", "20s"] {
        let (ran, result) = load_for(time, fault, mode, more).await;
        let result = result.unwrap_or_else(|| panic!("no result: {}", said(&ran)));
        if enough(&ran, &result) || time == "20s" {
            return (ran, result);
        }
    }
    unreachable!("the last time is always enough")
}

async fn load_for(time: &str, fault: Fault, mode: &str, more: &str) -> (Output, Option<Value>) {
    let address = server::start(fault).await;
    let name = format!("{fault:?}-{mode}-{}.json", address.port());
    let json = file(&name);
    let text = format!(
        "load --url http://{address}/mcp --mode {mode} --sessions 4 --warmup 100ms --duration {time} --timeout 30s {more} --json"
    );
    let mut arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    arguments.push(json.to_str().unwrap().to_owned());
    let ran = loadtest(arguments).await;
    let written = std::fs::read(&json).ok();
    let _ = std::fs::remove_file(&json);
    (
        ran,
        written.map(|text| serde_json::from_slice(&text).unwrap()),
    )
}

/// Returns the count and the third quartile of the latency `name`.
pub(crate) fn latency(result: &Value, name: &str) -> (u64, f64) {
    let latencies = result["latencies"].as_array().unwrap();
    let latency = latencies.iter().find(|latency| latency["name"] == name);
    let latency = latency.unwrap_or_else(|| panic!("no {name} in {latencies:?}"));
    let quartile = latency["quantiles_us"]
        .as_array()
        .unwrap()
        .iter()
        .find(|pair| pair[0] == 0.75);
    (
        latency["count"].as_u64().unwrap(),
        quartile.unwrap()[1].as_f64().unwrap(),
    )
}
