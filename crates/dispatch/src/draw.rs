//! Draws a worker for a request that must run once, before its session's owner plans the call.
//!
//! The draw ignores rules, arguments and the client's capabilities, which the plan checks. It changes nothing at the
//! worker, because the plan may refuse the call.

use std::sync::Arc;

use shoal_ports::{Drawn, Repeat, SessionRef, WorkerId};
use shoal_protocol::{Method, RawJson, Request};

use crate::asker::Asker;
use crate::dispatch::Dispatch;
use crate::own::Sees;
use crate::placing::Wish;
use crate::pools::View;
use crate::route::repeat_of;

struct DrawnItem<'v> {
    pool: &'v Arc<str>,
    tool: Option<&'v str>,
    repeat: Repeat,
}

impl Dispatch {
    pub(crate) fn draw_worker(
        &self,
        to: &SessionRef,
        request: &Request,
        tried: &[WorkerId],
    ) -> Drawn {
        if !request.method.may_have_effects() {
            return Drawn::Repeatable;
        }
        let (shared, asker) = (self.shared.view(), Asker::from(to));
        let own;
        let view: &View = if shared.own.is_empty() {
            &shared
        } else {
            let params = request.params.as_ref().map(RawJson::index);
            match self.sees(&shared, asker, &request.method, params.as_ref()) {
                Sees::All => &shared,
                Sees::Own(view, _) => {
                    own = view;
                    &own
                }
                Sees::Unknown => return Drawn::Nothing,
            }
        };
        let Some(item) = item(view, request) else {
            return Drawn::Nothing;
        };
        if item.repeat == Repeat::Safe {
            return Drawn::Repeatable;
        }
        let wish = Wish {
            asker,
            method: &request.method,
            pool: item.pool,
            tool: item.tool,
            params: request.params.as_ref(),
        };
        match self.draw_for(view, &wish, tried) {
            // A worker without ledger numbers forgets its refusals, so no owner could bind the call to another worker.
            Some(binding) if binding.ledger.is_some() => Drawn::Bound(binding),
            _ => Drawn::Nothing,
        }
    }
}

fn item<'v>(view: &'v View, request: &Request) -> Option<DrawnItem<'v>> {
    let member = |name: &str| request.params.as_ref()?.member(name)?.string();
    if request.method == Method::ToolsCall {
        let offered = view.catalog.tool(&member("name")?)?;
        let (tool, pool) = (&offered.tool, &offered.pool);
        let repeat = repeat_of(
            &view.settings,
            pool,
            &tool.name,
            tool.hints.safe_to_repeat(),
        );
        return Some(DrawnItem {
            pool,
            tool: Some(&*tool.name),
            repeat,
        });
    }
    let (method, name, uri) = (request.method.as_str(), member("name"), member("uri"));
    let pool = (view.catalog).extension(method, name.as_deref(), uri.as_deref())?;
    Some(DrawnItem {
        pool,
        tool: None,
        repeat: repeat_of(&view.settings, pool, method, false),
    })
}
