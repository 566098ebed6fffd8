use axum::response::Response;
use http::StatusCode;
use shoal_ports::{GatewayError, TaskAnswer, TaskRequest};
use shoal_protocol::task::no_such_task;
use shoal_protocol::{Method, Outcome, RawJson, Request, RpcError, input_responses, response};

use crate::answer;
use crate::permit::RequestPermit;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::tasks;
use crate::visit::Visit;

pub(super) async fn serve(
    visit: &Visit<'_>,
    request: Request,
    permit: RequestPermit,
) -> Result<Response, RefusedMessage> {
    let to = tasks::to(
        visit,
        tasks::named(request.params.as_ref()).map_err(Refusal::Modern)?,
    );
    let is_get = request.method == Method::TasksGet;
    let asked = visit.edge.gateway.ask_task(&to, asked(&request)?).await;
    let task = asked.map_err(refusal)?;
    let result = match is_get {
        true => task.to_result(),
        false => RawJson::from_static(r#"{"resultType":"complete"}"#),
    };
    let text = response(&request.id, &result);
    if let Some(record) = &permit.record {
        record.answered(&text);
    }
    let text = visit.reader().keep(text).map_err(Refusal::AnswerNotKept)?;
    Ok(answer::json(StatusCode::OK, text))
}

fn asked(request: &Request) -> Result<TaskRequest, Refusal> {
    Ok(match request.method {
        Method::TasksUpdate => TaskRequest::Answer {
            answers: answers(request.params.as_ref()).map_err(Refusal::Modern)?,
            awaits_question: false,
        },
        Method::TasksCancel => TaskRequest::Cancel,
        _ => TaskRequest::Get,
    })
}

fn answers(params: Option<&RawJson>) -> Result<Vec<TaskAnswer>, RpcError> {
    let given = params.and_then(|params| params.member("inputResponses"));
    let given = input_responses(given.as_ref())?;
    let answer = |(key, result)| TaskAnswer {
        key,
        outcome: Outcome::Result(result),
    };
    Ok(given.iter().map(answer).collect())
}

fn refusal(error: GatewayError) -> Refusal {
    match error {
        GatewayError::NotFound => Refusal::Modern(no_such_task()),
        error => error.into(),
    }
}
