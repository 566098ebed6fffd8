//! The tools of a document, made without its service.

use reqwest::Url;
use shoal_protocol::RawJson;

use super::api::Api;
use super::choice::ToolChoice;
use super::config::OpenApiConfig;
use super::document::Document;
use super::source::DocumentSource;

/// The tools of an OpenAPI document, as a pool would list them.
#[derive(Debug)]
pub struct DocumentPreview {
    /// The tools as listed.
    pub tools: Vec<RawJson>,
    /// Each operation that is not a tool, with the reason.
    pub left_out: Vec<String>,
    /// Each tool whose schemas are cut, with the extent of the cut.
    pub cut: Vec<String>,
}

impl DocumentPreview {
    /// Compiles the text of a document. The service's address is a placeholder, and Shoal fetches nothing.
    ///
    /// # Errors
    /// Why no operation of the document can be used.
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
