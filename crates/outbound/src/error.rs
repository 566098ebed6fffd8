use std::error::Error as _;

/// Describes an error with its causes, which reqwest's own text omits, and without its URL, whose query may be
/// secret.
pub fn whole_story(error: &reqwest::Error) -> String {
    let mut story = match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false => "the request failed".to_owned(),
    };
    let mut cause = error.source();
    while let Some(next) = cause {
        story.push_str(": ");
        story.push_str(&next.to_string());
        cause = next.source();
    }
    story
}
