use shoal_ports::SessionRef;
use shoal_protocol::RequestId;

use super::post::{id_in, id_out, session_in};
use super::trace::trace_out;
use crate::error::Malformed;
use crate::proto::node::v1 as wire;

pub(crate) fn until_over_out(
    to: &SessionRef,
    requests: Option<&[RequestId]>,
    relayed: bool,
) -> wire::UntilOver {
    let ids = requests.unwrap_or_default().iter();
    wire::UntilOver {
        flight: 0,
        session: to.session.as_str().to_owned(),
        principal: to.principal.as_str().to_owned(),
        relayed,
        trace: trace_out(to.trace.as_ref()),
        hinted: to.hinted,
        all: requests.is_none(),
        requests: ids.cloned().map(id_out).collect(),
    }
}

pub(crate) fn until_over_in(
    said: wire::UntilOver,
) -> Result<(SessionRef, Option<Vec<RequestId>>), Malformed> {
    let requests = match said.all {
        true => None,
        false => Some(
            said.requests
                .into_iter()
                .map(id_in)
                .collect::<Result<_, _>>()?,
        ),
    };
    let to = session_in(said.session, said.principal, said.trace, said.hinted);
    Ok((to, requests))
}
