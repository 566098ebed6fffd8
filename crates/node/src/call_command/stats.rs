use serde_json::{Value, json};
use shoal_protocol::{RawJson, ToolCost};

use crate::print::plain;

struct Cost {
    name: String,
    /// Name, description and arguments, which clients show to models.
    shown: usize,
    /// Few clients show the output schema.
    output: usize,
}

impl Cost {
    fn of(tool: &Value) -> Self {
        let ToolCost { shown, output } = ToolCost::of(&RawJson::of(tool));
        Self {
            name: plain(tool["name"].as_str().unwrap_or_default()),
            shown,
            output,
        }
    }
}

pub(super) fn of(tools: &[Value]) -> String {
    let mut costs: Vec<Cost> = tools.iter().map(Cost::of).collect();
    costs.sort_by(|one, other| other.shown.cmp(&one.shown).then(one.name.cmp(&other.name)));
    let shown: usize = costs.iter().map(|cost| cost.shown).sum();
    let output: usize = costs.iter().map(|cost| cost.output).sum();
    let names = costs.iter().map(|cost| cost.name.chars().count());
    let width = names.max().unwrap_or(0).max(TOTAL.len());
    let mut text = format!("{:width$}  {:>8}  {:>8}\n", "", "tokens", "output");
    for Cost {
        name,
        shown,
        output,
    } in &costs
    {
        text.push_str(&format!("{name:width$}  {shown:>8}  {output:>8}\n"));
    }
    text.push_str(&format!("{TOTAL:width$}  {shown:>8}  {output:>8}\n"));
    text
}

pub(super) fn as_json(tools: &[Value]) -> Value {
    let costs: Vec<Cost> = tools.iter().map(Cost::of).collect();
    let of =
        |cost: &Cost| json!({ "name": cost.name, "tokens": cost.shown, "output": cost.output });
    json!({
        "tools": costs.iter().map(of).collect::<Vec<_>>(),
        "tokens": costs.iter().map(|cost| cost.shown).sum::<usize>(),
        "output": costs.iter().map(|cost| cost.output).sum::<usize>(),
    })
}

const TOTAL: &str = "all tools";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{as_json, of};

    #[test]
    fn the_largest_tool_comes_first_and_the_sum_last() {
        let tools = [
            json!({ "name": "a", "inputSchema": { "type": "object" } }),
            json!({ "name": "b", "description": "x".repeat(400), "outputSchema": { "type": "object" } }),
        ];
        let lines = of(&tools);
        let lines: Vec<Vec<&str>> = lines
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["tokens", "output"]);
        assert_eq!(
            (lines[1][0], lines[1][2], lines[2][0], lines[2][2]),
            ("b", "5", "a", "0")
        );
        let shown = |line: &[&str]| line[line.len() - 2].parse::<usize>().unwrap();
        assert!(
            shown(&lines[1]) > 100 && shown(&lines[1]) < 120,
            "{lines:?}"
        );
        assert_eq!(shown(&lines[3]), shown(&lines[1]) + shown(&lines[2]));
        assert_eq!(as_json(&tools)["tokens"], shown(&lines[3]));
    }
}
