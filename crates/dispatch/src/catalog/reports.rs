use shoal_ports::{ToolAnnotations, ToolDetail, ToolReport, shown};
use shoal_protocol::RawJson;

use super::merge::renamed;
use super::{Catalog, OfferedTool};

const LONGEST_TITLE: usize = 160;
const LONGEST_DESCRIPTION: usize = 240;

impl Catalog {
    pub(crate) fn reports(&self, filter: &str) -> Vec<ToolReport> {
        let filter = filter.to_lowercase();
        let fits = |text: &str| text.to_lowercase().contains(&filter);
        let reports = (self.tools.iter()).map(|(name, offered)| offered.report(name));
        reports
            .filter(|tool| {
                fits(&tool.name) || fits(&tool.pool) || tool.title.as_deref().is_some_and(fits)
            })
            .collect()
    }

    pub(crate) fn detail(&self, name: &str) -> Option<ToolDetail> {
        let offered = self.tool(name)?;
        let tool = &offered.tool;
        Some(ToolDetail {
            pool: offered.pool.to_string(),
            definition: renamed(tool.listed.as_ref().unwrap_or(&tool.raw), &tool.name, name),
        })
    }
}

impl OfferedTool {
    fn report(&self, name: &str) -> ToolReport {
        let raw = &self.tool.raw;
        let title = raw.member("title").and_then(|title| title.string());
        let description = raw.member("description").and_then(|text| text.string());
        ToolReport {
            name: name.to_owned(),
            title: title.map(|title| shown(&title, LONGEST_TITLE)),
            description: description.map(|text| shown(&text, LONGEST_DESCRIPTION)),
            pool: self.pool.to_string(),
            annotations: annotations(raw.member("annotations").as_ref()),
            ..ToolReport::default()
        }
    }
}

fn annotations(given: Option<&RawJson>) -> ToolAnnotations {
    let says = |name: &str| match given?.member(name)?.as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    ToolAnnotations {
        read_only: says("readOnlyHint"),
        destructive: says("destructiveHint"),
        idempotent: says("idempotentHint"),
        open_world: says("openWorldHint"),
    }
}
