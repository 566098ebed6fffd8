use reqwest::Url;
use shoal_protocol::RawJson;

use super::api::Api;
use super::choice::ToolChoice;
use super::config::OpenApiConfig;
use super::document::Document;
use super::source::DocumentSource;

/// An OpenAPI document's tools, as a pool would list them.
#[derive(Debug)]
pub struct DocumentPreview {
    /// The tools as listed.
    pub tools: Vec<RawJson>,
    /// Each operation that is no tool, with the reason.
    pub left_out: Vec<String>,
    /// Each tool with cut schemas, and the extent of the cut.
    pub cut: Vec<String>,
}

impl DocumentPreview {
    /// Compiles a document's text, with a placeholder address. Shoal fetches nothing.
    ///
    /// # Errors
    /// Why no operation can be used.
    pub fn of(text: &[u8], config: &OpenApiConfig) -> Result<Self, String> {
        let document = Document::parse(text)?;
        let source = DocumentSource::of(&config.document)?;
        let base = Url::parse("https://service.invalid/").map_err(|error| error.to_string())?;
        let api = Api::compile(
            &document,
            config,
            &ToolChoice::default(),
            &source,
            Some(&base),
        )?;
        Ok(Self {
            tools: api.catalog.tools,
            left_out: api.catalog.left_out,
            cut: api.catalog.cut,
        })
    }
}
