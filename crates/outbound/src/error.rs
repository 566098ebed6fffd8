//! What is told of requests that failed.

use std::error::Error as _;

/// An error with its causes; reqwest's own text names none. Not the URL: its query may hold what is nobody's business.
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
