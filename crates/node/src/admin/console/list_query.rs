use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;

use super::super::refuse;

const USUALLY: usize = 200;
const MOST: usize = 500;
const LONGEST_FILTER: usize = 128;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    pub(super) filter: String,
    limit: Option<usize>,
}

impl ListQuery {
    pub(super) fn refusal(&self) -> Option<Response> {
        let reason = || format!("a filter has at most {LONGEST_FILTER} characters");
        let fits = self.filter.chars().count() <= LONGEST_FILTER;
        (!fits).then(|| refuse(StatusCode::BAD_REQUEST, &reason()))
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(USUALLY).min(MOST)
    }
}
