use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CustomRequest,
    GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams, ReadResourceResponse,
    RequestId, RequestParamsMeta, ResultType,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_ports::{Call, CallOutcome};
use shoal_protocol::{Era, Method, RawJson, RpcError};

use super::context::CallInfo;
use super::wire;
use crate::CallContext;

const HEADROOM: usize = 128;

const SPARE: usize = 4 << 10;

/// Calls the handler's method, with raw parameters and a raw result. rmcp's service loop would
/// refuse revisions other than the peer's, although Shoal translates them.
pub(super) async fn invoke<H: ServerHandler>(
    handler: &H,
    call: &Call,
    context: &CallContext,
    peer: Peer<RoleServer>,
    id: i64,
) -> Result<RawJson, RpcError> {
    let ctx = RequestContext::new(RequestId::Number(id), peer);
    match call.method {
        Method::ToolsCall => {
            let (params, ctx) = prepare::<CallToolRequestParams>(call, context, ctx)?;
            match handler
                .call_tool(params, ctx)
                .await
                .map_err(wire::rpc_error)?
            {
                CallToolResponse::Complete(mut result) => {
                    leave_out_complete(&mut result.result_type, call);
                    raw(&result, call)
                }
                CallToolResponse::InputRequired(result) => raw(&result, call),
                _ => Err(RpcError::internal(
                    "the tool answered with a task of its own, which cannot be followed through Shoal",
                )),
            }
        }
        Method::ResourcesRead => {
            let (params, ctx) = prepare::<ReadResourceRequestParams>(call, context, ctx)?;
            let read = handler.read_resource(params, ctx).await;
            match read.map_err(wire::rpc_error)? {
                ReadResourceResponse::Complete(mut result) => {
                    leave_out_complete(&mut result.result_type, call);
                    raw(&result, call)
                }
                ReadResourceResponse::InputRequired(result) => raw(&result, call),
                _ => Err(unknown_response(&call.method)),
            }
        }
        Method::PromptsGet => {
            let (params, ctx) = prepare::<GetPromptRequestParams>(call, context, ctx)?;
            let got = handler.get_prompt(params, ctx).await;
            match got.map_err(wire::rpc_error)? {
                GetPromptResponse::Complete(mut result) => {
                    leave_out_complete(&mut result.result_type, call);
                    raw(&result, call)
                }
                GetPromptResponse::InputRequired(result) => raw(&result, call),
                _ => Err(unknown_response(&call.method)),
            }
        }
        Method::Complete => {
            let (params, ctx) = prepare::<CompleteRequestParams>(call, context, ctx)?;
            let completed = handler.complete(params, ctx).await;
            raw(&completed.map_err(wire::rpc_error)?, call)
        }
        Method::Other(ref name) => {
            let ctx = equip(call, context, ctx);
            let params = call.params.as_ref().map(RawJson::read).transpose();
            let params = params.map_err(|error| invalid(&error))?;
            let request = CustomRequest::new(&**name, params);
            let answered = handler.on_custom_request(request, ctx).await;
            raw(&answered.map_err(wire::rpc_error)?, call)
        }
        ref other => Err(RpcError::method_not_found(other.as_str())),
    }
}

pub(super) fn outcome(result: Result<RawJson, RpcError>) -> CallOutcome {
    match result {
        Ok(result) => CallOutcome::Result(result),
        Err(error) => CallOutcome::Error(error),
    }
}

/// Fills the context as rmcp's service loop does.
fn prepare<P: DeserializeOwned + RequestParamsMeta>(
    call: &Call,
    context: &CallContext,
    mut ctx: RequestContext<RoleServer>,
) -> Result<(P, RequestContext<RoleServer>), RpcError> {
    let params = call.params.as_ref();
    let params = params.ok_or_else(|| RpcError::invalid_params("the request has no params"))?;
    let mut params: P = params.read().map_err(|error| invalid(&error))?;
    ctx.meta = params.meta_mut().take().unwrap_or_default();
    Ok((params, equip(call, context, ctx)))
}

fn equip(
    call: &Call,
    context: &CallContext,
    mut ctx: RequestContext<RoleServer>,
) -> RequestContext<RoleServer> {
    ctx.ct = context.cancelled().clone();
    ctx.extensions.insert(CallInfo::of(call));
    ctx.extensions.insert(context.session_state());
    ctx
}

fn invalid(error: &impl std::fmt::Display) -> RpcError {
    RpcError::invalid_params(format!("the params are invalid: {error}"))
}

/// Removes rmcp's default `resultType` for legacy callers here, because a later removal would have to parse
/// the result.
fn leave_out_complete(result_type: &mut Option<ResultType>, call: &Call) {
    if call.caller.revision.era() == Era::Legacy {
        result_type.take_if(|kind| kind.is_complete());
    }
}

/// Serializes a result. Reserves the length of the parameters, because many results are as long.
fn raw(result: &impl Serialize, call: &Call) -> Result<RawJson, RpcError> {
    let given = call.params.as_ref().map_or(0, RawJson::len);
    let mut text = Vec::with_capacity(given + HEADROOM);
    serde_json::to_writer(&mut text, result)
        .map_err(|error| RpcError::internal(format!("the result is not JSON: {error}")))?;
    if text.capacity() - text.len() > SPARE {
        text.shrink_to_fit();
    }
    Ok(RawJson::from_valid(text.into()))
}

fn unknown_response(method: &Method) -> RpcError {
    RpcError::internal(format!(
        "the handler's answer to {method} is of an unknown kind"
    ))
}
