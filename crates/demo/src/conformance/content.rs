//! Each kind of content (scenarios `tools-call-*`).

use rmcp::{
    model::{CallToolResult, ContentBlock, ResourceContents},
    tool, tool_router,
};

use super::ConformanceServer;
use crate::media;

#[tool_router(router = content_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Returns text.
    #[tool]
    fn test_simple_text(&self) -> String {
        "This is a simple text response for testing.".to_owned()
    }

    /// Returns an image.
    #[tool]
    fn test_image_content(&self) -> ContentBlock {
        ContentBlock::image(media::png(), media::PNG_TYPE)
    }

    /// Returns audio.
    #[tool]
    fn test_audio_content(&self) -> ContentBlock {
        ContentBlock::audio(media::wav(), media::WAV_TYPE)
    }

    /// Returns an embedded resource.
    #[tool]
    fn test_embedded_resource(&self) -> ContentBlock {
        let text = "This is an embedded resource content.";
        ContentBlock::resource(ResourceContents::text(text, "test://embedded-resource"))
    }

    /// Returns text, an image and an embedded resource.
    #[tool]
    fn test_multiple_content_types(&self) -> CallToolResult {
        let resource = ResourceContents::text(
            r#"{"test":"data","value":123}"#,
            "test://mixed-content-resource",
        );
        CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(media::png(), media::PNG_TYPE),
            ContentBlock::resource(resource.with_mime_type("application/json")),
        ])
    }

    /// Always fails.
    #[tool]
    fn test_error_handling(&self) -> Result<String, String> {
        Err("This tool intentionally returns an error for testing".to_owned())
    }
}
