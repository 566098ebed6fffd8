//! Fixtures with `InputRequiredResult` (SEP-2322).

use rmcp::{
    RoleServer,
    handler::server::tool::{InputResponses, RequestState},
    model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult},
    service::RequestContext,
    tool, tool_router,
};

use super::{
    ConformanceServer,
    input::{Answers, RoundState, form, require, roots, sample},
};
use crate::ask::{AskRefusal, Need};

const NAME_QUESTION: &str = "What is your name?";

#[tool_router(router = input_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Asks the user for a name.
    #[tool]
    async fn test_input_required_result_elicitation(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        match Answers::new(responses.as_ref()).field::<String>("user_name", "name") {
            Some(Ok(name)) => Ok(text(format!("Hello, {name}!"))),
            Some(Err(how)) => Ok(text(format!("Hello, stranger! You {how}."))),
            None => Ok(ask_who()?.into()),
        }
    }

    /// Asks the user for a name, with nothing but the result on its stream.
    #[tool]
    async fn test_streaming_elicitation(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        match Answers::new(responses.as_ref()).field::<String>("user_name", "name") {
            Some(answer) => Ok(text(format!("Streamed to {}.", answer.unwrap_or_default()))),
            None => Ok(ask_who()?.into()),
        }
    }

    /// Asks the client's model for the capital of France.
    #[tool]
    async fn test_input_required_result_sampling(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Sampling.check(&ctx)?;
        match Answers::new(responses.as_ref()).sample("capital_question") {
            Some(answer) => Ok(text(answer)),
            None => {
                let question = sample("What is the capital of France?", 100);
                Ok(require([("capital_question", question)], None)?.into())
            }
        }
    }

    /// Asks the client for its roots.
    #[tool]
    async fn test_input_required_result_list_roots(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Roots.check(&ctx)?;
        match Answers::new(responses.as_ref()).roots("client_roots") {
            Some(roots) => Ok(text(format!("Client roots: {roots}"))),
            None => Ok(require([("client_roots", roots())], None)?.into()),
        }
    }

    /// Asks for confirmation and expects its state back.
    #[tool]
    async fn test_input_required_result_request_state(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        confirm(Answers::new(responses.as_ref()), state.as_deref())
    }

    /// Asks for confirmation and rejects a state that was tampered with.
    #[tool]
    async fn test_input_required_result_tampered_state(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        confirm(Answers::new(responses.as_ref()), state.as_deref())
    }

    /// Asks the user, the model and the client, all in one round.
    #[tool]
    async fn test_input_required_result_multiple_inputs(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        for need in [Need::Form, Need::Sampling, Need::Roots] {
            need.check(&ctx)?;
        }
        let answers = Answers::new(responses.as_ref());
        let given = match RoundState::open(state.as_deref())? {
            None => None,
            Some(RoundState::Everything) => answers
                .field::<String>("user_name", "name")
                .zip(answers.sample("greeting"))
                .zip(answers.roots("client_roots")),
            Some(_) => return Err(RoundState::foreign()),
        };
        if let Some(((name, greeting), roots)) = given {
            let name = name.unwrap_or("stranger".to_owned());
            return Ok(text(format!("{greeting} {name}, working in {roots}")));
        }
        let inputs = [
            ("user_name", form(NAME_QUESTION, "name", "string")?),
            ("greeting", sample("Generate a greeting", 50)),
            ("client_roots", roots()),
        ];
        Ok(require(inputs, Some(&RoundState::Everything))?.into())
    }

    /// Asks for a name and then for a color.
    #[tool]
    async fn test_input_required_result_multi_round(
        &self,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        Need::Form.check(&ctx)?;
        let answers = Answers::new(responses.as_ref());
        match RoundState::open(state.as_deref())? {
            None => Ok(ask_name()?.into()),
            Some(RoundState::Name) => match answers.field::<String>("step1", "name") {
                Some(Ok(name)) => Ok(ask_color(name)?.into()),
                Some(Err(how)) => Ok(text(format!("Step 1 was {how}."))),
                None => Ok(ask_name()?.into()),
            },
            Some(RoundState::Color { name }) => match answers.field::<String>("step2", "color") {
                Some(Ok(color)) => Ok(text(format!("{name} likes {color}."))),
                Some(Err(how)) => Ok(text(format!("Step 2 was {how}."))),
                None => Ok(ask_color(name)?.into()),
            },
            Some(_) => Err(RoundState::foreign()),
        }
    }

    /// Asks only for what the client can answer.
    #[tool]
    async fn test_input_required_result_capabilities(
        &self,
        InputResponses(responses): InputResponses,
        ctx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, AskRefusal> {
        let declared = ctx.client_capabilities().unwrap_or_default();
        let answers = Answers::new(responses.as_ref());
        if Need::Form.met_by(&declared) {
            return Ok(match answers.field::<String>("user_name", "name") {
                Some(answer) => text(answer.unwrap_or("no name".to_owned())),
                None => ask_who()?.into(),
            });
        }
        Need::Sampling.check(&ctx)?;
        Ok(match answers.sample("greeting") {
            Some(greeting) => text(greeting),
            None => require([("greeting", sample("Generate a greeting", 50))], None)?.into(),
        })
    }
}

fn confirm(answers: Answers<'_>, state: Option<&str>) -> Result<CallToolResponse, AskRefusal> {
    let answer = match RoundState::open(state)? {
        None => None,
        Some(RoundState::Confirmation) => answers.field::<bool>("confirm", "ok"),
        Some(_) => return Err(RoundState::foreign()),
    };
    Ok(match answer {
        Some(Ok(true)) => text("state-ok: confirmed".to_owned()),
        Some(_) => text("state-ok: not confirmed".to_owned()),
        None => {
            let question = form("Please confirm", "ok", "boolean")?;
            require([("confirm", question)], Some(&RoundState::Confirmation))?.into()
        }
    })
}

pub(super) fn ask_who() -> Result<InputRequiredResult, AskRefusal> {
    let question = form(NAME_QUESTION, "name", "string")?;
    Ok(require([("user_name", question)], None)?)
}

fn ask_name() -> Result<InputRequiredResult, AskRefusal> {
    let question = form("Step 1: What is your name?", "name", "string")?;
    Ok(require([("step1", question)], Some(&RoundState::Name))?)
}

fn ask_color(name: String) -> Result<InputRequiredResult, AskRefusal> {
    let question = form("Step 2: What is your favorite color?", "color", "string")?;
    Ok(require(
        [("step2", question)],
        Some(&RoundState::Color { name }),
    )?)
}

fn text(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
