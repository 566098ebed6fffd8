//! `load` against a correct server and against servers with one fault each; then `report` and
//! `compare` on its results.

#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "../common/mod.rs"]
mod common;
mod run;
mod server;

use std::process::Output;

use common::{figure, file, said};
use run::{latency, load, load_until, loadtest};
use serde_json::Value;
use server::Fault;

const EVERYTHING: &str =
    "echo=4,payload:8KiB=2,progress:5=2,elicitation=2,journaled=2,count=2,update=1";
const MODERN: &str = "echo=4,payload:8KiB=2,progress:5=2,elicitation=2,journaled=2,update=1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_call_is_made_and_verified_in_both_eras() {
    for (mode, mix) in [("legacy", EVERYTHING), ("modern", MODERN)] {
        let kinds: Vec<&str> = mix
            .split(',')
            .map(|part| part.split('=').next().unwrap())
            .collect();
        let all = |result: &Value| kinds.iter().all(|kind| latency(result, kind).0 > 0);
        let more = format!("--mix {mix} --listeners 3 --pid {}", std::process::id());
        let (ran, result) = load_until(|_, result| all(result), Fault::None, mode, &more).await;
        assert!(ran.status.success(), "{mode}: {}", said(&ran));
        assert!(all(&result), "{mode}: {}", said(&ran));
        assert!(figure(&result, "updates told to listeners") >= 3.0);
        assert!(figure(&result, "server memory at the end") > 0.0);
        assert!(said(&ran).contains("outstanding"), "{}", said(&ran));
    }
}

async fn expect_found(fault: Fault, mode: &str, more: &str, what: &str) {
    let violation = format!("VIOLATION {what}");
    let found = |ran: &Output, _: &Value| said(ran).contains(&violation);
    let (ran, result) = load_until(found, fault, mode, more).await;
    assert!(!ran.status.success(), "{fault:?} {mode}: {}", said(&ran));
    assert!(found(&ran, &result), "{fault:?} {mode}: {}", said(&ran));
    assert!(!result["violations"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_fault_is_found() {
    for mode in ["legacy", "modern"] {
        for (fault, kind, what) in [
            (Fault::WrongText, "echo", "wrong answer: echo"),
            (
                Fault::WrongText,
                "payload:8KiB",
                "wrong answer: payload:8KiB",
            ),
            (Fault::WrongText, "journaled", "wrong answer: journaled"),
            (Fault::WrongId, "echo", "wrong answer: echo"),
            (Fault::LosesStep, "progress:5", "wrong answer: progress:5"),
            (Fault::Reorders, "progress:5", "wrong answer: progress:5"),
            (
                Fault::AsksNothing,
                "elicitation",
                "wrong answer: elicitation",
            ),
            (Fault::Breaks, "echo", "no answer: echo"),
        ] {
            expect_found(fault, mode, &format!("--mix {kind}"), what).await;
        }
    }
    expect_found(
        Fault::CountsTwice,
        "legacy",
        "--mix count",
        "wrong answer: count",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_that_are_cut_off_or_told_nothing_are_found() {
    for mode in ["legacy", "modern"] {
        for (fault, what) in [
            (Fault::EndsStreams, "no answer: a listener's stream"),
            (Fault::TellsNothing, "listener not told of a change"),
        ] {
            expect_found(fault, mode, "--mix echo,update --listeners 2", what).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_turns_calls_away_for_the_moment_is_slow_and_not_wrong() {
    let away = |_: &Output, result: &Value| result.to_string().contains("calls turned away");
    let (ran, result) = load_until(away, Fault::Refuses, "modern", "").await;
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(figure(&result, "calls turned away (HTTP 429 or 503)") > 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_loop_counts_the_time_that_calls_wait_behind_a_stall() {
    let more = "--sessions 1 --rate 50 --warmup 0s --duration 2s";
    let address = server::start(Fault::Stalls).await;
    let json = file("stall.json");
    let text = format!("load --url http://{address}/mcp --mode modern {more} --json");
    let mut arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    arguments.push(json.to_str().unwrap().to_owned());
    let ran = loadtest(arguments).await;
    assert!(ran.status.success(), "{}", said(&ran));
    let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    std::fs::remove_file(&json).unwrap();
    let (due, waited) = latency(&result, "latency from when a call was due");
    let (sent, answered) = latency(&result, "latency from when a call was sent");
    // Every due call is counted, sent or not.
    assert_eq!(due, 100);
    assert_eq!(
        due - sent,
        figure(&result, "calls due and never sent") as u64
    );
    assert!(waited > answered, "{waited} µs {answered} µs");
    assert!(
        said(&ran).contains("calls due and never sent"),
        "{}",
        said(&ran)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ramps_churn_and_slow_readers_are_reported() {
    let ramp = "--sessions 4 --rate 40..120 --ramp-steps 2 --churn 20";
    let (ran, result) = load(Fault::None, "legacy", &ramp.replace("--sessions 4 ", "")).await;
    assert!(ran.status.success(), "{}", said(&ran));
    let result = result.unwrap();
    assert_eq!(latency(&result, "40/s by 4 sessions").0, 20);
    assert_eq!(latency(&result, "120/s by 4 sessions").0, 60);
    assert!(
        latency(&result, "opening a session, from when it was due").0 > 0,
        "{}",
        said(&ran)
    );
    assert_eq!(result["marks"].as_array().unwrap().len(), 2);

    for mode in ["legacy", "modern"] {
        let (ran, result) = load(Fault::None, mode, "--slow-readers 2").await;
        assert!(ran.status.success(), "{}", said(&ran));
        let result = result.unwrap();
        assert_eq!(
            figure(&result, "slow readers that got all of their stream"),
            2.0
        );
        assert!(figure(&result, "p99 of the others, with slow readers over without") > 0.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_said_at_the_start() {
    for (mode, more, why) in [
        (
            "modern",
            "--mix echo,count",
            "clients of 2026-07-28 have none",
        ),
        ("modern", "--churn 5", "--churn needs --mode legacy"),
        ("legacy", "--tool ecko", "the server has no tool ecko"),
        (
            "legacy",
            "--rate 10..20 --slow-readers 1",
            "nothing else may change",
        ),
        ("legacy", "--pid 4294967", "could not read a process"),
        ("legacy", "--mix echo=0", "no weight"),
    ] {
        let (ran, result) = load(Fault::None, mode, more).await;
        assert!(!ran.status.success() && result.is_none(), "{more}");
        assert!(said(&ran).contains(why), "{more}: {}", said(&ran));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_become_a_page_and_are_compared() {
    let mut files = Vec::new();
    for (name, fault) in [("right", Fault::None), ("lying", Fault::WrongText)] {
        let enough = |ran: &Output, _: &Value| ran.status.success() == (fault == Fault::None);
        let (_, result) = load_until(enough, fault, "legacy", "").await;
        let path = file(&format!("{name}.json"));
        std::fs::write(&path, result.to_string()).unwrap();
        files.push(path.to_str().unwrap().to_owned());
    }
    let page = file("page.html").to_str().unwrap().to_owned();
    let mut arguments = vec!["report".to_owned(), "-o".to_owned(), page.clone()];
    arguments.extend(files.clone());
    let ran = loadtest(arguments).await;
    assert!(ran.status.success(), "{}", said(&ran));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains(r#""violations":[]"#) && html.contains(r#""what":"wrong answer: echo""#));

    let mut arguments = vec!["compare".to_owned(), "--html".to_owned(), page.clone()];
    arguments.extend(files.clone());
    let ran = loadtest(arguments).await;
    // A comparison must not hide the wrong answers of one result.
    assert!(
        !ran.status.success() && said(&ran).contains("VIOLATIONS in"),
        "{}",
        said(&ran)
    );
    assert!(said(&ran).contains("calls a second"), "{}", said(&ran));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains(r#""over loadtest-"#) && html.contains(r#""violations":[]"#));

    let other = file("other.json");
    for (text, why) in [
        ("not JSON", "it is no JSON"),
        (r#"{"calls": 1}"#, "it has no \"format\""),
        (r#"{"format": "shoal-loadtest/9"}"#, "shoal-loadtest/1"),
        (r#"{"format": "shoal-loadtest/1"}"#, "lacks a part"),
    ] {
        std::fs::write(&other, text).unwrap();
        let path = other.to_str().unwrap().to_owned();
        let ran = loadtest(vec!["compare".to_owned(), files[0].clone(), path]).await;
        assert!(
            !ran.status.success() && said(&ran).contains(why),
            "{text}: {}",
            said(&ran)
        );
    }
    for path in files.iter().chain([&page]) {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::remove_file(other).unwrap();
}
