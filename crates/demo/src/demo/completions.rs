use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use super::resources::GREETING;

const LANGUAGES: &[&str] = &[
    "English",
    "French",
    "German",
    "Italian",
    "Japanese",
    "Portuguese",
    "Spanish",
];
const NAMES: &[&str] = &["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"];

pub(super) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Prompt(prompt), "language") if prompt.name == "greet" => LANGUAGES,
        (Reference::Resource(template), "name") if template.uri == GREETING => NAMES,
        _ => &[],
    };
    let typed = request.argument.value.to_lowercase();
    let values = known
        .iter()
        .filter(|value| value.to_lowercase().starts_with(&typed));
    CompletionInfo::with_all_values(values.map(ToString::to_string).collect())
        .map(CompleteResult::new)
        .map_err(|error| ErrorData::internal_error(error, None))
}
