use reqwest::Url;

use super::api::Api;
use super::choice::ToolChoice;
use super::config::OpenApiConfig;
use super::document::Document;
use super::source::DocumentSource;

pub(crate) fn compile(text: &[u8]) -> Result<(), String> {
    let base = Url::parse("https://a/b/").expect("it is a URL");
    let source = DocumentSource::of("document.yaml")?;
    let document = Document::parse(text)?;
    let config = OpenApiConfig::new("document.yaml");
    Api::compile(
        &document,
        &config,
        &ToolChoice::default(),
        &source,
        Some(&base),
    )
    .map(drop)
}
