use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    AdoptCall, Binding, CallId, ClientInfo, Delivered, ForwardedHeaders, GatewayError,
    LedgerNumber, Principal, Repeat, Route, SessionGateway as _, SessionId, SessionRef,
    SessionTasks, TaskAnswer, TaskClient, TaskMark, TaskRequest, WorkerId,
};
use shoal_protocol::task::{InputRequest, Task, TaskEnd, TaskState};
use shoal_protocol::{Method, Outcome, RawJson, Request, RequestId, RpcError};

use crate::gateway::{edge, ping, session};
use crate::scripted_gateway::{Answer, Asked};
use crate::setting::{Node, config, within};

fn states() -> Vec<TaskState> {
    let question = |method, params| InputRequest { method, params };
    let questions = BTreeMap::from([
        (
            "c.1".to_owned(),
            question(
                Method::Elicit,
                Some(RawJson::from_static(r#"{"message": "?"}"#)),
            ),
        ),
        ("c.2".to_owned(), question(Method::RootsList, None)),
    ]);
    vec![
        TaskState::Working,
        TaskState::InputRequired(BTreeMap::new()),
        TaskState::InputRequired(questions),
        TaskState::Ended(TaskEnd::Completed(RawJson::from_static(
            r#"{"content": []}"#,
        ))),
        TaskState::Ended(TaskEnd::Failed(RawJson::from_static(
            r#"{"code":1,"message":"m"}"#,
        ))),
        TaskState::Ended(TaskEnd::Cancelled),
    ]
}

fn task(state: TaskState) -> Task {
    Task {
        id: "t-task".to_owned(),
        state,
        created_at: 1,
        updated_at: 2,
        ttl_ms: 3,
        poll_interval_ms: 4,
    }
}

#[tokio::test]
async fn every_state_of_a_task_arrives_as_it_is() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        for state in states() {
            let said = task(state);
            for _ in 0..2 {
                let answer = Answer::Delivered(Delivered::Task(said.clone()));
                node.routing.will(answer);
            }
            let told = edge.ask_task(&session(), TaskRequest::Get).await.unwrap();
            assert_eq!(told, said);
            assert_eq!(TaskMark::of(&told), TaskMark::of(&said));
            let delivered = edge.deliver(&session(), ping()).await;
            assert!(matches!(delivered, Ok(Delivered::Task(told)) if told == said));
        }
    })
    .await;
}

fn adopted() -> AdoptCall {
    let params = RawJson::from_static(r#"{"name": "t"}"#);
    AdoptCall {
        call: CallId::generate(),
        request: Request {
            id: RequestId::from_string("seven"),
            method: Method::ToolsCall,
            params: Some(params.clone()),
        },
        repeat: Repeat::Never,
        route: Route {
            pool: "p".into(),
            tool: Some("t".into()),
            params: Some(params),
            hold: None,
            rule: Some("r".into()),
        },
        binding: Binding {
            worker: WorkerId::new("w"),
            ledger: Some(LedgerNumber {
                incarnation: 7,
                number: 8,
            }),
        },
        client: TaskClient {
            client_info: Some(ClientInfo::new(RawJson::from_static(r#"{"name":"n"}"#))),
            capabilities: RawJson::from_static(r#"{"roots":{}}"#),
        },
        repeated: true,
    }
}

#[tokio::test]
async fn a_call_that_becomes_a_task_arrives_as_it_is() {
    within(async {
        let bare = AdoptCall {
            repeat: Repeat::Safe,
            route: Route {
                tool: None,
                params: Some(RawJson::from_static("{}")),
                rule: None,
                ..adopted().route
            },
            binding: Binding {
                ledger: None,
                ..adopted().binding
            },
            client: TaskClient {
                client_info: None,
                ..adopted().client
            },
            repeated: false,
            ..adopted()
        };
        let headers = ForwardedHeaders::new([(Arc::from("x-a"), Bytes::from_static(b"b"))]);
        let to = SessionRef {
            headers,
            ..SessionRef::new(SessionId::new("t-task"), Principal::new("alice"))
        };
        for sent in [adopted(), bare] {
            let node = Node::start(config()).await;
            let said = task(TaskState::Working);
            node.local
                .will(Answer::Delivered(Delivered::Task(said.clone())));
            let told = edge(&node).relayed().adopt(&to, sent.clone()).await;
            assert_eq!(told, Ok(said));
            let Asked::Adopt(asked, call) = node.local.first().await else {
                panic!("a call");
            };
            assert_eq!(format!("{asked:?}"), format!("{to:?}"));
            assert_eq!(format!("{call:?}"), format!("{sent:?}"));
        }
    })
    .await;
}

#[tokio::test]
async fn requests_about_tasks_arrive_as_they_are() {
    within(async {
        let outcomes = [
            Outcome::Result(RawJson::from_static("{}")),
            Outcome::Error(RpcError::invalid_request("no")),
        ];
        let answers = outcomes.map(|outcome| TaskAnswer {
            key: "c.1".to_owned(),
            outcome,
        });
        let requests = [
            TaskRequest::Get,
            TaskRequest::Cancel,
            TaskRequest::Watch { seen: TaskMark(0) },
            TaskRequest::Watch {
                seen: TaskMark(u64::MAX),
            },
            TaskRequest::Answer {
                answers: Vec::from(answers),
                awaits_question: true,
            },
            TaskRequest::Answer {
                answers: Vec::new(),
                awaits_question: false,
            },
        ];
        for request in requests {
            let node = Node::start(config()).await;
            node.routing.will(Answer::Refused(GatewayError::NotFound));
            let refused = edge(&node).ask_task(&session(), request.clone()).await;
            assert_eq!(refused, Err(GatewayError::NotFound));
            let Asked::Task(to, asked) = node.routing.first().await else {
                panic!("a request");
            };
            assert_eq!(format!("{to:?}"), format!("{:?}", session()));
            assert_eq!(format!("{asked:?}"), format!("{request:?}"));
        }
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_its_caller_leaves_ends_at_the_node() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        node.routing.will(Answer::Never);
        let watch = TaskRequest::Watch { seen: TaskMark(1) };
        let waiting = tokio::spawn(async move { edge.ask_task(&session(), watch).await });
        node.routing.first().await;
        waiting.abort();
        let mut dropped = node.routing.dropped.subscribe();
        dropped.wait_for(|dropped| *dropped == 1).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_wait_for_the_end_of_calls_names_its_requests() {
    within(async {
        let some = [RequestId::from_number(1), RequestId::from_string("a")];
        for requests in [None, Some(&some[..]), Some(&[])] {
            let node = Node::start(config()).await;
            let accepted = Answer::Delivered(Delivered::Accepted);
            node.routing.will(accepted);
            edge(&node).until_over(&session(), requests).await.unwrap();
            let Asked::UntilOver(to, asked) = node.routing.first().await else {
                panic!("a wait");
            };
            assert_eq!(to.session, session().session);
            assert_eq!(asked.as_deref(), requests);
        }
    })
    .await;
}

#[tokio::test]
async fn the_tasks_of_a_session_arrive_as_they_are() {
    within(async {
        let node = Node::start(config()).await;
        let edge = edge(&node);
        assert_eq!(edge.tasks_of(&session()).await, Ok(None));
        for tasks in [Vec::new(), vec![SessionId::new("a"), SessionId::new("b")]] {
            let made = SessionTasks {
                tasks,
                capabilities: RawJson::from_static(r#"{"roots":{}}"#),
            };
            *node.routing.tasks.lock() = Some(made.clone());
            assert_eq!(edge.tasks_of(&session()).await, Ok(Some(made)));
        }
    })
    .await;
}
