//! Shoal corrects the client's message before anything reads it, so that approvals, sealed states, the journal, the
//! audit trail and the server see the same text (ADR 49).

use shoal_protocol::{Body, Message, Method, RawJson, RawObject};

use crate::config::ArgumentPolicy;
use crate::pools::View;
use crate::slow_checks::AT_ONCE;

/// Skips arguments that take long to check.
pub(crate) fn body(view: &View, body: &mut Body) {
    match body {
        Body::Single(message) => coerce(view, message),
        Body::Batch(members) => members
            .iter_mut()
            .flatten()
            .for_each(|message| coerce(view, message)),
    }
}

fn coerce(view: &View, message: &mut Message) {
    if let Message::Request(request) = message
        && request.method == Method::ToolsCall
        && let Some(given) = &request.params
        && let Some(params) = coerced(view, given)
    {
        request.params = Some(params);
    }
}

fn coerced(view: &View, given: &RawJson) -> Option<RawJson> {
    let name = given.member("name")?.string()?;
    let offered = view.catalog.tool(&name)?;
    if view.settings.of(&offered.pool).arguments != ArgumentPolicy::Coerce {
        return None;
    }
    let checker = offered.tool.checker.as_ref().ok()?;
    let arguments = checker.coerced(&given.member("arguments")?, AT_ONCE)?;
    let mut params = RawObject::of(given)?;
    params.set("arguments", arguments);
    Some(params.to_json())
}
