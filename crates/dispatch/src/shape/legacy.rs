use shoal_protocol::{Method, RawJson, RawObject};

/// Removes members that earlier revisions lack. Converts a non-object `structuredContent` to text
/// content.
pub(super) fn result(method: &Method, result: RawJson) -> RawJson {
    let result = result.without("resultType");
    if *method != Method::ToolsCall {
        return result;
    }
    match result.member_begins("structuredContent") {
        None | Some(b'{') => result,
        Some(_) => unstructured(&result),
    }
}

fn unstructured(result: &RawJson) -> RawJson {
    let mut object = RawObject::of(result).unwrap_or_default();
    let structured = object.remove("structuredContent");
    let says_nothing = object
        .get("content")
        .and_then(|content| content.read::<Vec<RawJson>>().ok())
        .is_none_or(|content| content.is_empty());
    if let Some(structured) = structured.filter(|it| says_nothing && !it.is_null()) {
        let text = RawJson::of(structured.as_str());
        let content = format!(r#"[{{"type":"text","text":{}}}]"#, text.as_str());
        object.set("content", RawJson::from_valid(content.into()));
    }
    object.to_json()
}

#[cfg(test)]
mod tests {
    use shoal_protocol::{Method, RawJson};

    #[test]
    fn structured_content_of_other_kinds_does_not_reach_legacy_callers() {
        for (modern, legacy) in [
            (
                r#"{"resultType":"complete","content":[],"structuredContent":{"n":1}}"#,
                r#"{"content":[],"structuredContent":{"n":1}}"#,
            ),
            (
                r#"{"resultType":"complete","content":[{"type":"text","text":"x"}],"structuredContent":[1]}"#,
                r#"{"content":[{"type":"text","text":"x"}]}"#,
            ),
            (
                r#"{"resultType":"complete","content":[],"structuredContent":["a"]}"#,
                r#"{"content":[{"type":"text","text":"[\"a\"]"}]}"#,
            ),
            (
                r#"{"resultType":"complete","content":[],"structuredContent":null}"#,
                r#"{"content":[]}"#,
            ),
        ] {
            let shaped = super::result(&Method::ToolsCall, RawJson::from_static(modern));
            assert_eq!(shaped.as_str(), legacy);
        }
        let kept = RawJson::from_static(r#"{"contents":[],"structuredContent":1}"#);
        let shaped = super::result(&Method::ResourcesRead, kept.clone());
        assert_eq!(shaped.as_str(), kept.as_str());
    }
}
