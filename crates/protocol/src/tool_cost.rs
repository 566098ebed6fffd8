//! Estimates a tool's share of a model's context.

use crate::{RawJson, RawObject};

const BYTES_OF_A_TOKEN: usize = 4;
const SHOWN: [&str; 3] = ["name", "description", "inputSchema"];

/// The estimated tokens of a tool's definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolCost {
    /// Tokens that clients show to models.
    pub shown: usize,
    /// Tokens of the result's schema, which few clients show.
    pub output: usize,
}

impl ToolCost {
    /// Estimates a tool's cost.
    pub fn of(tool: &RawJson) -> Self {
        let tool = RawObject::of(tool).unwrap_or_default();
        let shown = SHOWN.iter().filter_map(|name| {
            let value = tool.get(name)?;
            Some(name.len() + 4 + value.len())
        });
        let output = tool.get("outputSchema").map_or(0, |output| output.len());
        Self {
            shown: (shown.sum::<usize>() + 1).div_ceil(BYTES_OF_A_TOKEN),
            output: output.div_ceil(BYTES_OF_A_TOKEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ToolCost;
    use crate::RawJson;

    #[test]
    fn a_tool_costs_what_models_are_shown_of_it() {
        let shown = json!({ "name": "a", "description": "b", "inputSchema": { "type": "object" } });
        let bytes = shown.to_string().len();
        let mut whole = shown.clone();
        whole["title"] = json!("never shown");
        whole["outputSchema"] = json!({ "type": "object" });
        let cost = ToolCost::of(&RawJson::of(&whole));
        assert_eq!(cost.shown, bytes.div_ceil(4));
        assert_eq!(cost.output, 5);
        assert_eq!(ToolCost::of(&RawJson::of(&shown)).output, 0);
    }
}
