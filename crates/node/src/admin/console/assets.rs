use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $type:expr) => {
        (
            concat!("/console/", $name),
            $type,
            include_str!(concat!("../../../assets/console/", $name)),
        )
    };
}

pub(super) const ASSETS: [(&str, &str, &str); 17] = [
    (
        "/console/",
        HTML,
        include_str!("../../../assets/console/index.html"),
    ),
    asset!("console.css", CSS),
    asset!("main.js", SCRIPT),
    asset!("api.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("table.js", SCRIPT),
    asset!("plot.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("sessions.js", SCRIPT),
    asset!("calls.js", SCRIPT),
    asset!("tools.js", SCRIPT),
    asset!("toolcall.js", SCRIPT),
    asset!("form.js", SCRIPT),
    asset!("schema.js", SCRIPT),
    asset!("errors.js", SCRIPT),
    asset!("connect.js", SCRIPT),
];

pub(super) fn router() -> Router {
    ASSETS
        .into_iter()
        .fold(Router::new(), |router, (path, kind, text)| {
            router.route(path, get(async move || answer(kind, text)))
        })
}

fn answer(kind: &'static str, text: &'static str) -> Response {
    let kind = HeaderValue::from_static(kind);
    let fresh = HeaderValue::from_static("no-cache");
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)];
    (headers, text).into_response()
}
