//! One static page, which draws the results in the browser with uPlot.

use anyhow::Context;
use serde::Serialize;

use super::compare::Comparison;
use super::read::Named;

const PAGE: &str = include_str!("page.html");

#[derive(Serialize)]
struct Data<'a> {
    comparison: Option<&'a Comparison>,
    results: &'a [Named],
}

pub(super) fn page(comparison: Option<&Comparison>, results: &[Named]) -> anyhow::Result<String> {
    let data = serde_json::to_string(&Data {
        comparison,
        results,
    });
    // No text of a result may end the script.
    let data = data
        .context("could not encode the results")?
        .replace('<', "\\u003c");
    let page = PAGE
        .replace("{{uplot.css}}", include_str!("vendor/uPlot.min.css"))
        .replace("{{uplot.js}}", include_str!("vendor/uPlot.iife.min.js"))
        .replace("{{page.js}}", include_str!("page.js"));
    Ok(page.replace("{{data}}", &data))
}

#[cfg(test)]
mod tests {
    use super::{Named, page};
    use crate::outcome::Outcome;

    #[test]
    fn nothing_of_a_result_becomes_markup_or_comes_from_elsewhere() {
        let outcome = Outcome::begin("load", "</script><script>alert(1)</script>");
        let name = "one".to_owned();
        let page = page(None, &[Named { name, outcome }]).unwrap();
        assert!(page.contains(r"\u003c/script>\u003cscript>alert(1)"));
        assert_eq!(page.matches("</script>").count(), 3);
        for foreign in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}
