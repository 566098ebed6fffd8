use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_policy::{PolicyConfig, RulesFile, RulesInForce};
use shoal_ports::{
    AskId, Call, CallEventKind, CallFailure, CallOutcome, CallSettings, Dispatcher as _, Epoch,
    LedgerNumber, MayStart, Repeat, RunningCall, WorkerId,
};
use shoal_protocol::{Method, Outcome, RawJson, RawObject, RpcError, code};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::fake_worker::FakeWorker;
use crate::policy::TestFile;
use crate::setting::{CallExt as _, Setting, configured, finish, legacy, modern, result, tools};

const ASK: &str = r#"
    [[rules]]
    name = "all"
    effect = "allow"

    [[rules]]
    name = "ask first"
    effect = "ask"
    tools = ["pay"]
"#;

fn config() -> Config {
    let file: RulesFile = toml::from_str(ASK).unwrap();
    let policy = PolicyConfig {
        rules: file.rules.unwrap(),
        ..PolicyConfig::default()
    };
    Config {
        policies: RulesInForce::open(&policy).unwrap().map(Arc::new),
        ..Config::default()
    }
}

fn worker() -> FakeWorker {
    let worker = FakeWorker::new("w1", "till", tools(&["pay", "see"]));
    *worker.ledger.lock() = Some(LedgerNumber {
        incarnation: 7,
        number: 3,
    });
    worker
}

fn paying() -> (Setting, Arc<FakeWorker>) {
    let setting = configured(config());
    let worker = setting.add(worker());
    (setting, worker)
}

fn amount() -> Value {
    json!({ "amount": 100, "to": "bob" })
}

async fn asked(running: &mut RunningCall) -> (AskId, String) {
    let event = running.events.next().await.expect("it asks");
    let CallEventKind::Ask {
        ask,
        method: Method::Elicit,
        params,
    } = event.kind
    else {
        panic!("no question");
    };
    assert_eq!(event.sequence, 0);
    let params: Value = params.unwrap().read().unwrap();
    (ask, params["message"].as_str().unwrap().to_owned())
}

fn said(action: &str) -> Outcome {
    Outcome::Result(RawJson::of(&json!({ "action": action })))
}

fn why_not(outcome: CallOutcome) -> String {
    let result = result(outcome);
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("The tool was not run."), "{text}");
    text.to_owned()
}

#[tokio::test]
async fn a_tool_that_is_denied_while_the_person_thinks_does_not_run() {
    let name = format!("shoal-dispatch-approval-{}.toml", std::process::id());
    let file = TestFile(std::env::temp_dir().join(name));
    std::fs::write(&file.0, ASK).unwrap();
    let policy = PolicyConfig {
        file: Some(file.0.clone()),
        ..PolicyConfig::default()
    };
    let rules = Arc::new(RulesInForce::open(&policy).unwrap().unwrap());
    let setting = configured(Config {
        policies: Some(rules.clone()),
        ..Config::default()
    });
    let worker = setting.add(worker());
    let mut running = setting.start(legacy("pay", amount())).await.unwrap();
    let (ask, _) = asked(&mut running).await;
    let denied = format!("{ASK}\n[[rules]]\nname = \"no\"\neffect = \"deny\"\ntools = [\"pay\"]\n");
    std::fs::write(&file.0, denied).unwrap();
    assert!(rules.reread());
    assert!(running.control.answer(ask, said("accept")).await);
    let (_, outcome) = finish(&mut running).await;
    let CallOutcome::Refused(error) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(error.message, "unknown tool: pay");
    assert_eq!(worker.calls(), 0);
    drop(running);
    assert_eq!(setting.dispatch.in_flight(), 0);
}

#[tokio::test]
async fn a_call_runs_once_and_only_after_the_yes() {
    let (setting, worker) = paying();
    let mut running = setting.start(legacy("pay", amount())).await.unwrap();
    let (ask, message) = asked(&mut running).await;
    assert_eq!(
        message,
        "Allow one call of the tool pay of till?\n\nArguments:\n{\n  \"amount\": 100,\n  \"to\": \"bob\"\n}"
    );
    assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 1));
    assert!(!running.control.answer(AskId(1), said("accept")).await);
    assert!(running.control.answer(ask, said("accept")).await);
    assert!(running.control.answer(ask, said("decline")).await);
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty());
    assert_eq!(result(outcome)["content"], json!([]));
    assert_eq!(worker.calls(), 1);
    assert_eq!(worker.last_params()["arguments"], amount());
    drop(running);
    assert_eq!(setting.dispatch.in_flight(), 0);
    setting.result(legacy("see", amount())).await;
}

#[tokio::test]
async fn without_a_yes_nothing_runs() {
    for (answer, why) in [
        (said("decline"), "declined"),
        (said("cancel"), "did not agree"),
        (said("yes"), "no action"),
        (Outcome::Error(RpcError::internal("no screen")), "no screen"),
    ] {
        let (setting, worker) = paying();
        let mut running = setting.start(legacy("pay", amount())).await.unwrap();
        let (ask, _) = asked(&mut running).await;
        assert!(running.control.answer(ask, answer).await);
        let told = why_not(finish(&mut running).await.1);
        assert!(told.contains(why), "{told}");
        assert_eq!((worker.calls(), setting.dispatch.in_flight()), (0, 0));
    }
}

#[tokio::test]
async fn a_question_does_not_wait_for_ever_and_ends_with_its_call() {
    let setting = configured(Config {
        calls: CallSettings {
            input_timeout: Duration::from_millis(1).into(),
            ..config().calls
        },
        ..config()
    });
    let worker = setting.add(worker());
    let mut running = setting.start(legacy("pay", amount())).await.unwrap();
    let (ask, _) = asked(&mut running).await;
    let told = why_not(finish(&mut running).await.1);
    assert!(told.contains("in time"), "{told}");
    assert!(!running.control.answer(ask, said("accept")).await);

    let (setting, other) = paying();
    let call = legacy("pay", amount());
    let id = call.id;
    let mut running = setting.start(call).await.unwrap();
    asked(&mut running).await;
    assert!(setting.dispatch.cancel(id, "an operator"));
    let ended = finish(&mut running).await.1;
    assert!(matches!(ended, CallOutcome::Failed(CallFailure::Cancelled)));
    assert_eq!((worker.calls(), other.calls()), (0, 0));
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_so() {
    let (setting, worker) = paying();
    let error = setting.error(legacy("pay", amount()).able("{}")).await;
    assert_eq!(error.code, code::INVALID_REQUEST);
    assert!(error.message.contains("a person must agree"), "{error}");
    let error = setting.error(modern("pay", amount()).able("{}")).await;
    assert_eq!(error.code, code::MISSING_CLIENT_CAPABILITY);
    assert!(error.data.unwrap().as_str().contains("elicitation"));
    assert_eq!(worker.calls(), 0);
}

#[tokio::test]
async fn the_next_owner_of_a_session_asks_again_what_was_not_begun() {
    let (setting, worker) = paying();
    let resumed = async |call: Call| setting.dispatch.resume(call, 0).await.unwrap();
    let mut call = legacy("pay", amount()).at("w1");
    call.may_start = MayStart::IfApproved;
    let mut first = resumed(call.clone()).await;
    let mut second = resumed(call.clone()).await;
    // Both owners' questions have one id, so a client may answer either.
    let ((one, _), (ask, _)) = (asked(&mut first).await, asked(&mut second).await);
    assert_eq!((one, worker.calls()), (ask, 0));
    assert!(second.control.answer(ask, said("accept")).await);
    result(finish(&mut second).await.1);
    assert_eq!(worker.calls(), 1);
    assert_eq!(worker.started.lock()[0].id, call.id);
    let mut call = call.repeatable();
    call.binding = None;
    let mut running = resumed(call).await;
    let (ask, _) = asked(&mut running).await;
    assert!(running.control.answer(ask, said("decline")).await);
    why_not(finish(&mut running).await.1);
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn the_next_owner_goes_on_with_what_was_agreed_to() {
    let setting = configured(config());
    let worker = setting.add(worker().on_attach(|_, _, mut script| async move {
        script.say("\"done\"").await;
        true
    }));
    let mut call = legacy("pay", amount()).at("w1");
    call.may_start = MayStart::IfApproved;
    let mut running = setting.dispatch.resume(call, 0).await.unwrap();
    let (before, outcome) = finish(&mut running).await;
    assert!(before.is_empty());
    result(outcome);
    assert_eq!(worker.calls(), 0);
}

async fn modern_question(setting: &Setting, call: Call) -> (Value, Value) {
    let asked = setting.result(call).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = asked["inputRequests"]["approval"].clone();
    assert_eq!(question["method"], "elicitation/create");
    (question, asked["requestState"].clone())
}

fn retry(call: Call, state: &Value, action: &str) -> Call {
    call.with("requestState", state.clone()).with(
        "inputResponses",
        json!({ "approval": { "action": action } }),
    )
}

#[tokio::test]
async fn a_modern_client_comes_back_with_the_yes() {
    let (setting, worker) = paying();
    let (question, state) = modern_question(&setting, modern("pay", amount())).await;
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("\"amount\": 100"), "{message}");
    assert_eq!(worker.calls(), 0);
    // The state fits only the same tool, arguments and principal.
    for other in [
        modern("pay", json!({ "amount": 1000, "to": "bob" })),
        modern("see", amount()),
        modern("pay", amount()).from("eve"),
    ] {
        let error = setting.error(retry(other, &state, "accept")).await;
        assert_eq!(error.code, code::INVALID_PARAMS);
    }
    let silent = modern("pay", amount()).with("requestState", state.clone());
    modern_question(&setting, silent).await;
    let forged = json!({ "approval": { "action": "accept" } });
    let forged = modern("pay", amount()).with("inputResponses", forged);
    modern_question(&setting, forged).await;
    assert_eq!(worker.calls(), 0);
    let done = setting
        .result(retry(modern("pay", amount()), &state, "accept"))
        .await;
    assert_eq!(done["resultType"], "complete");
    let ran = worker.last_params();
    assert_eq!(ran["arguments"], amount());
    assert!(ran.get("requestState").is_none() && ran.get("inputResponses").is_none());
    setting
        .result(retry(modern("pay", amount()), &state, "accept"))
        .await;
    let started = worker.started.lock();
    assert_eq!(started.len(), 2);
    assert!(started.iter().all(|call| call.id == started[0].id));
    let ledger = worker.ledgers.lock()[0];
    assert_eq!(ledger.map(|ledger| ledger.number), Some(3));
}

fn begun(worker: &FakeWorker) -> usize {
    let started = worker.started.lock();
    started
        .iter()
        .filter(|call| call.may_start != MayStart::No)
        .count()
}

#[tokio::test]
async fn after_another_answer_a_state_begins_nothing() {
    for repeatable in [false, true] {
        for action in ["decline", "cancel", "yes"] {
            let setting = configured(config());
            let mut tools = tools(&["pay"]);
            if repeatable {
                let pay = json!({ "name": "pay", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } });
                tools.tools = vec![RawJson::of(&pay)];
            }
            let worker = FakeWorker::new("w1", "till", tools);
            *worker.ledger.lock() = Some(LedgerNumber {
                incarnation: 7,
                number: 3,
            });
            let worker = setting.add(worker);
            let (_, state) = modern_question(&setting, modern("pay", amount())).await;
            worker.refuse(CallFailure::Cancelled);
            let no = retry(modern("pay", amount()), &state, action);
            why_not(setting.outcome(no).await);
            {
                let told = worker.started.lock();
                assert_eq!(told.len(), 1, "{action}");
                assert_eq!(told[0].may_start, MayStart::No);
                assert!(worker.ledgers.lock()[0].is_some());
                assert_eq!(told[0].repeat, Repeat::Never);
            }
            worker.refuse(CallFailure::Cancelled);
            let yes = retry(modern("pay", amount()), &state, "accept");
            let error = setting.error(yes).await;
            assert_eq!(error.code, code::INVALID_PARAMS, "{action}");
            assert!(error.message.contains("not valid any more"), "{error}");
            let ids: Vec<_> = worker.started.lock().iter().map(|call| call.id).collect();
            assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
        }
    }
}

#[tokio::test]
async fn a_no_that_comes_after_the_yes_is_told_what_came_of_the_call() {
    let (setting, worker) = paying();
    let (_, state) = modern_question(&setting, modern("pay", amount())).await;
    for action in ["accept", "decline"] {
        let done = setting
            .result(retry(modern("pay", amount()), &state, action))
            .await;
        assert_eq!(done["resultType"], "complete", "{action} {done}");
    }
    assert_eq!(begun(&worker), 1);
}

#[tokio::test]
async fn a_no_is_taken_where_its_worker_is_gone() {
    let (setting, worker) = paying();
    let (_, state) = modern_question(&setting, modern("pay", amount())).await;
    setting.dispatch.remove_worker(&WorkerId::new("w1"));
    setting.add(FakeWorker::new("w2", "till", tools(&["pay"])));
    let no = retry(modern("pay", amount()), &state, "decline");
    let told = result(setting.outcome(no).await);
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("declined"), "{text}");
    // An earlier yes may have run the tool.
    assert!(text.contains("This request has not run the tool"), "{text}");
    assert_eq!(worker.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_answers_to_a_question_the_earlier_one_is_told_that_the_other_goes_on() {
    for actions in [["accept", "accept"], ["accept", "decline"]] {
        let setting = configured(config());
        let replaced = Arc::new(Notify::new());
        let calls = Arc::new(AtomicUsize::new(0));
        let worker = setting.add(worker().on_call(move |_, mut script| {
            let (replaced, first) = (replaced.clone(), calls.fetch_add(1, Ordering::SeqCst) == 0);
            async move {
                if first {
                    replaced.notified().await;
                } else {
                    replaced.notify_one();
                    script.result(r#"{"content":[]}"#).await;
                }
            }
        }));
        let (_, state) = modern_question(&setting, modern("pay", amount())).await;
        let [first, second] = actions.map(|action| retry(modern("pay", amount()), &state, action));
        let mut first = setting.start(first).await.unwrap();
        let done = setting.result(second).await;
        assert_eq!(done["resultType"], "complete", "{done}");
        let (_, outcome) = finish(&mut first).await;
        let CallOutcome::Refused(error) = outcome else {
            panic!("unexpected {outcome:?}");
        };
        assert_eq!(error.code, code::INVALID_PARAMS);
        assert!(error.message.contains("another request"), "{error}");
        assert_eq!(
            begun(&worker),
            actions.iter().filter(|it| **it == "accept").count()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_does_not_wait_for_a_worker_that_does_not_answer() {
    let (setting, worker) = paying();
    let (_, state) = modern_question(&setting, modern("pay", amount())).await;
    worker.lose();
    worker.connect(false);
    let asked_at = Instant::now();
    let no = retry(modern("pay", amount()), &state, "decline");
    let told = result(setting.outcome(no).await);
    assert!(asked_at.elapsed() < Duration::from_secs(2));
    assert_eq!(told["isError"], true, "{told}");
    let text = told["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("This request has not run the tool"), "{text}");
    worker.refuse(CallFailure::Cancelled);
    worker.connect(true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let told = worker.started.lock();
    assert!(!told.is_empty() && told.iter().all(|call| call.may_start == MayStart::No));
}

#[tokio::test]
async fn a_yes_is_for_the_numbers_that_were_shown() {
    let (setting, worker) = paying();
    // Puts the number's text into the JSON, because serialising the number would round it.
    let with = |number: &str, state: Option<&Value>| {
        let mut call = modern("pay", json!({}));
        let params = call.params.take().unwrap();
        let mut params = RawObject::of(&params).unwrap();
        let text = format!(r#"{{"amount":{number},"to":"bob"}}"#);
        params.set("arguments", RawJson::parse_text(text.into()).unwrap());
        if let Some(state) = state {
            let yes = json!({ "approval": { "action": "accept" } });
            params.set("requestState", RawJson::of(state));
            params.set("inputResponses", RawJson::of(&yes));
        }
        call.params = Some(params.to_json());
        call
    };
    for (shown, other) in [
        ("9007199254740993", "9007199254740992"),
        ("18446744073709551617", "18446744073709551616"),
        ("1.00000000000000000000001", "1"),
    ] {
        let (question, state) = modern_question(&setting, with(shown, None)).await;
        let message = question["params"]["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("\"amount\": {shown},")),
            "{message}"
        );
        let error = setting.error(with(other, Some(&state))).await;
        assert_eq!(error.code, code::INVALID_PARAMS);
        assert_eq!(begun(&worker), 0);
    }
    let (_, state) = modern_question(&setting, with("1e20", None)).await;
    setting.result(with("1e20", Some(&state))).await;
    let ran = worker.started.lock()[0].params.clone().unwrap();
    let ran = ran.member("arguments").unwrap();
    assert_eq!(ran.as_str(), r#"{"amount":1e20,"to":"bob"}"#);
}

#[tokio::test]
async fn a_yes_is_for_a_worker_that_can_tell_whether_it_has_been_used() {
    let (setting, worker) = paying();
    let (_, state) = modern_question(&setting, modern("pay", amount())).await;
    let other = setting.add(FakeWorker::new("w2", "till", tools(&["pay", "see"])));
    setting.dispatch.remove_worker(&WorkerId::new("w1"));
    modern_question(&setting, retry(modern("pay", amount()), &state, "accept")).await;
    assert_eq!((worker.calls(), other.calls()), (0, 0));
}

#[tokio::test]
async fn a_yes_that_comes_again_for_a_task_is_told_what_has_become_of_the_call() {
    let (setting, worker) = paying();
    let (_, state) = modern_question(&setting, modern("pay", amount())).await;
    worker.refuse(CallFailure::Superseded { epoch: Epoch(1) });
    let again = retry(modern("pay", amount()), &state, "accept");
    let CallFailure::OutcomeUnknown { reason } = setting.failure(again).await else {
        panic!("its outcome is known");
    };
    assert!(reason.contains("become a task"), "{reason}");
}
