use bytes::Bytes;
use shoal_protocol::{RawJson, RpcError, code};

use crate::recorder::{Said, said};

pub(crate) fn ends_call(text: &[u8]) -> bool {
    match said(text) {
        Said::Result => true,
        Said::Error => !may_run_on(text),
        Said::Other => false,
    }
}

fn may_run_on(error: &[u8]) -> bool {
    let answer = RawJson::from_valid(Bytes::copy_from_slice(error));
    let error = answer.member("error");
    let code = error.map(|error| RpcError::from_json(&error).code);
    code.is_none_or(|code| {
        [
            code::REQUEST_CANCELLED,
            code::DEADLINE_EXCEEDED,
            code::OUTCOME_UNKNOWN,
            code::GONE,
        ]
        .contains(&code)
    })
}
