use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shoal_ports::{AuthError, Grant, Operation, matches_pattern};

use crate::config::Auth;

const MOST: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Scopes {
    required: Vec<String>,
    of_tools: BTreeMap<String, Vec<String>>,
    implied: BTreeMap<String, Vec<String>>,
}

impl Scopes {
    pub(crate) fn new(auth: &Auth) -> Self {
        Self {
            required: auth.required_scopes.clone(),
            of_tools: auth.tool_scopes.clone(),
            implied: auth.implied_scopes.clone(),
        }
    }

    /// Includes implied scopes.
    pub(crate) fn granted<'s>(&'s self, of_token: Vec<&'s str>) -> Box<[Arc<str>]> {
        let mut granted = BTreeSet::new();
        let mut next: Vec<&str> = of_token.into_iter().take(MOST).collect();
        while let Some(scope) = next.pop() {
            if granted.insert(scope) {
                let implied = self.implied.get(scope).into_iter().flatten();
                next.extend(implied.map(String::as_str));
            }
        }
        granted.into_iter().map(Arc::from).collect()
    }

    pub(crate) fn expect_required(&self, grant: &Grant) -> Result<(), AuthError> {
        expect(grant, self.required.iter().collect())
    }

    /// The error names all scopes that the call needs, so that the client asks for them at once.
    pub(crate) fn expect_for(
        &self,
        grant: &Grant,
        operation: &Operation<'_>,
    ) -> Result<(), AuthError> {
        if self.of_tools.is_empty() || operation.method != "tools/call" {
            return Ok(());
        }
        let Some(tool) = operation.parameter("name") else {
            return Ok(());
        };
        let fitting = (self.of_tools.iter()).filter(|(pattern, _)| matches_pattern(pattern, &tool));
        let mut needed: Vec<&String> = fitting.flat_map(|(_, scopes)| scopes).collect();
        needed.extend(&self.required);
        expect(grant, needed)
    }
}

fn expect(grant: &Grant, needed: Vec<&String>) -> Result<(), AuthError> {
    if needed.iter().all(|scope| grant.has(scope)) {
        return Ok(());
    }
    let needed: BTreeSet<&String> = needed.into_iter().collect();
    Err(AuthError::Scope(needed.into_iter().cloned().collect()))
}

#[cfg(test)]
mod tests {
    use shoal_ports::{AuthError, Grant, Memo, Operation};
    use shoal_protocol::RawJson;

    use super::Scopes;
    use crate::config::Auth;

    fn scopes() -> Scopes {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Scopes::new(&Auth {
            required_scopes: list(&["mcp"]),
            tool_scopes: [("write_*".to_owned(), list(&["files:write"]))].into(),
            implied_scopes: [
                ("admin".to_owned(), list(&["files:write", "user"])),
                ("user".to_owned(), list(&["mcp", "admin"])),
            ]
            .into(),
            ..Auth::default()
        })
    }

    fn grant(scopes: &Scopes, of_token: &str) -> Grant {
        Grant {
            scopes: scopes.granted(of_token.split(' ').collect()),
            claims: RawJson::from_static("{}"),
            until: None,
            read: Memo::default(),
        }
    }

    #[test]
    fn a_broader_scope_brings_the_narrower_ones() {
        let scopes = scopes();
        assert!(scopes.expect_required(&grant(&scopes, "mcp other")).is_ok());
        assert!(scopes.expect_required(&grant(&scopes, "admin")).is_ok());
        let lacking = scopes.expect_required(&grant(&scopes, "MCP"));
        assert_eq!(lacking, Err(AuthError::Scope(["mcp".to_owned()].into())));
    }

    #[test]
    fn a_tool_may_need_more_and_all_of_it_is_named_at_once() {
        let scopes = scopes();
        let call = |of_token: &str, tool: &'static str| {
            let operation = Operation {
                method: "tools/call",
                params: Some(&RawJson::from_static(tool)),
            };
            scopes.expect_for(&grant(&scopes, of_token), &operation)
        };
        assert!(call("mcp", r#"{"name":"read_file"}"#).is_ok());
        assert!(call("mcp files:write", r#"{"name":"write_file"}"#).is_ok());
        let lacking = call("mcp", r#"{"name":"write_file"}"#);
        let needed = ["files:write".to_owned(), "mcp".to_owned()];
        assert_eq!(lacking, Err(AuthError::Scope(needed.into())));
    }
}
