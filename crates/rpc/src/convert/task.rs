use bytes::Bytes;
use shoal_ports::{
    AdoptCall, CallId, ClientInfo, Route, SessionId, SessionRef, SessionTasks, TaskAnswer,
    TaskClient, TaskMark, TaskRequest,
};
use shoal_protocol::task::{InputRequest, Task, TaskEnd, TaskState};
use shoal_protocol::{Method, RawJson};

use super::call::{headers_in, headers_out, ledger_out, repeat_in, repeat_out};
use super::outcome::{answer_in, answer_out};
use super::post::{binding_in, request_in, request_out, session_in};
use super::trace::trace_out;
use super::{sixteen, trusted};
use crate::error::Malformed;
use crate::proto::node::v1 as wire;
use crate::proto::node::v1::ask_task::Request;
use crate::proto::node::v1::task::State;

pub(crate) fn adopt_out(to: &SessionRef, adopted: AdoptCall, relayed: bool) -> wire::Adopt {
    let AdoptCall {
        call,
        request,
        repeat,
        route,
        binding,
        client,
        repeated,
    } = adopted;
    let own = request.params.as_ref().map(RawJson::as_bytes);
    let differs = |params: &RawJson| own != Some(params.as_bytes());
    wire::Adopt {
        flight: 0,
        task: to.session.as_str().to_owned(),
        principal: to.principal.as_str().to_owned(),
        relayed,
        trace: trace_out(to.trace.as_ref()),
        hinted: to.hinted,
        repeated,
        call: Bytes::copy_from_slice(call.as_bytes()),
        durability: repeat_out(repeat).into(),
        pool: route.pool.to_string(),
        tool: route.tool.map(|tool| tool.to_string()),
        params: route.params.filter(differs).map(RawJson::into_bytes),
        worker: binding.worker.to_string(),
        ledger: binding.ledger.map(ledger_out),
        rule: route.rule.map(|rule| rule.to_string()),
        client_info: client.client_info.map(|it| it.as_json().to_bytes()),
        capabilities: client.capabilities.into_bytes(),
        headers: headers_out(&to.headers),
        request: Some(request_out(request)),
    }
}

pub(crate) fn adopt_in(said: wire::Adopt) -> Result<(SessionRef, AdoptCall), Malformed> {
    let request = said.request.ok_or(Malformed("adopt: it has no request"))?;
    let request = request_in(request)?;
    let params = said.params.map(trusted);
    let adopted = AdoptCall {
        call: CallId::from_bytes(sixteen(&said.call, "call id")?),
        repeat: repeat_in(said.durability),
        route: Route {
            pool: said.pool.into(),
            tool: said.tool.map(Into::into),
            params: params.or_else(|| request.params.clone()),
            hold: None,
            rule: said.rule.map(Into::into),
        },
        binding: binding_in(said.worker, said.ledger)?,
        client: TaskClient {
            client_info: said.client_info.map(|info| ClientInfo::new(trusted(info))),
            capabilities: trusted(said.capabilities),
        },
        repeated: said.repeated,
        request,
    };
    let mut to = session_in(said.task, said.principal, said.trace, said.hinted);
    to.headers = headers_in(said.headers);
    Ok((to, adopted))
}

pub(crate) fn ask_out(to: &SessionRef, request: TaskRequest, relayed: bool) -> wire::AskTask {
    let request = match request {
        TaskRequest::Get => None,
        TaskRequest::Watch { seen } => Some(Request::Watch(seen.0)),
        TaskRequest::Cancel => Some(Request::Cancel(wire::ask_task::Cancel {})),
        TaskRequest::Answer {
            answers,
            awaits_question,
        } => {
            let answers = answers.into_iter().map(|answer| wire::ask_task::Answer {
                key: answer.key,
                outcome: Some(answer_out(answer.outcome)),
            });
            Some(Request::Answers(wire::ask_task::Answers {
                answers: answers.collect(),
                awaits_question,
            }))
        }
    };
    wire::AskTask {
        flight: 0,
        task: to.session.as_str().to_owned(),
        principal: to.principal.as_str().to_owned(),
        relayed,
        trace: trace_out(to.trace.as_ref()),
        hinted: to.hinted,
        request,
    }
}

pub(crate) fn ask_in(said: wire::AskTask) -> Result<(SessionRef, TaskRequest), Malformed> {
    let request = match said.request {
        None => TaskRequest::Get,
        Some(Request::Watch(seen)) => TaskRequest::Watch {
            seen: TaskMark(seen),
        },
        Some(Request::Cancel(wire::ask_task::Cancel {})) => TaskRequest::Cancel,
        Some(Request::Answers(said)) => {
            let answer = |said: wire::ask_task::Answer| {
                Ok(TaskAnswer {
                    key: said.key,
                    outcome: answer_in(said.outcome)?,
                })
            };
            TaskRequest::Answer {
                answers: said
                    .answers
                    .into_iter()
                    .map(answer)
                    .collect::<Result<_, _>>()?,
                awaits_question: said.awaits_question,
            }
        }
    };
    let to = session_in(said.task, said.principal, said.trace, said.hinted);
    Ok((to, request))
}

pub(crate) fn list_out(session: &SessionRef, relayed: bool) -> wire::ListTasks {
    wire::ListTasks {
        flight: 0,
        session: session.session.as_str().to_owned(),
        principal: session.principal.as_str().to_owned(),
        relayed,
        trace: trace_out(session.trace.as_ref()),
        hinted: session.hinted,
    }
}

pub(crate) fn tasks_out(flight: u64, made: Option<SessionTasks>) -> wire::SessionTasks {
    let Some(SessionTasks {
        tasks,
        capabilities,
    }) = made
    else {
        return wire::SessionTasks {
            flight,
            ..wire::SessionTasks::default()
        };
    };
    wire::SessionTasks {
        flight,
        offered: true,
        tasks: tasks.iter().map(ToString::to_string).collect(),
        capabilities: capabilities.into_bytes(),
    }
}

pub(crate) fn tasks_in(said: wire::SessionTasks) -> Option<SessionTasks> {
    said.offered.then(|| SessionTasks {
        tasks: said.tasks.into_iter().map(SessionId::new).collect(),
        capabilities: trusted(said.capabilities),
    })
}

pub(crate) fn task_out(flight: u64, task: Task) -> wire::Task {
    let state = match task.state {
        TaskState::Working => None,
        TaskState::InputRequired(questions) => {
            let questions = questions
                .into_iter()
                .map(|(key, asked)| wire::task::Question {
                    key,
                    method: asked.method.as_str().to_owned(),
                    params: asked.params.map(RawJson::into_bytes),
                });
            Some(State::Questions(wire::task::Questions {
                questions: questions.collect(),
            }))
        }
        TaskState::Ended(TaskEnd::Completed(result)) => Some(State::Completed(result.into_bytes())),
        TaskState::Ended(TaskEnd::Failed(error)) => Some(State::Failed(error.into_bytes())),
        TaskState::Ended(TaskEnd::Cancelled) => Some(State::Cancelled(wire::task::Cancelled {})),
    };
    wire::Task {
        flight,
        task: task.id,
        created_at: task.created_at,
        updated_at: task.updated_at,
        ttl_ms: task.ttl_ms,
        poll_interval_ms: task.poll_interval_ms,
        state,
    }
}

pub(crate) fn task_in(said: wire::Task) -> Task {
    let state = match said.state {
        None => TaskState::Working,
        Some(State::Questions(said)) => {
            let questions = said.questions.into_iter().map(|said| {
                let asked = InputRequest {
                    method: Method::from_name(&said.method),
                    params: said.params.map(trusted),
                };
                (said.key, asked)
            });
            TaskState::InputRequired(questions.collect())
        }
        Some(State::Completed(result)) => TaskState::Ended(TaskEnd::Completed(trusted(result))),
        Some(State::Failed(error)) => TaskState::Ended(TaskEnd::Failed(trusted(error))),
        Some(State::Cancelled(wire::task::Cancelled {})) => TaskState::Ended(TaskEnd::Cancelled),
    };
    Task {
        id: said.task,
        state,
        created_at: said.created_at,
        updated_at: said.updated_at,
        ttl_ms: said.ttl_ms,
        poll_interval_ms: said.poll_interval_ms,
    }
}
