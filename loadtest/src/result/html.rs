use std::fmt::Write;

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The first column names the rows, and the others are numbers.
pub(super) fn table(caption: &str, head: &[String], rows: &[Vec<String>]) -> String {
    let caption = escape(caption);
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption>{caption}</caption><thead><tr>"
    );
    for name in head {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match column {
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                _ if cell.ends_with("better") => write!(html, "<td class=\"good\">{cell}</td>"),
                _ if cell.ends_with("worse") => write!(html, "<td class=\"bad\">{cell}</td>"),
                _ => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

pub(super) fn folded(summary: &str, inside: &str) -> String {
    format!(
        "<details><summary>{}</summary>{inside}</details>\n",
        escape(summary)
    )
}

pub(super) fn page(title: &str, body: &str) -> String {
    let (title, style) = (escape(title), include_str!("page.css"));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{style}</style>\n\
         </head>\n<body>\n<a class=\"skip\" href=\"#main\">To the results</a>\n<header><h1>{title}</h1></header>\n\
         <main id=\"main\" tabindex=\"-1\">\n{body}</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{escape, table};

    #[test]
    fn nothing_of_a_result_becomes_markup() {
        assert_eq!(escape("<b a='1'>&\""), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;");
        let html = table(
            "<c>",
            &["<h>".to_owned()],
            &[vec!["<r>".to_owned(), "<d>".to_owned()]],
        );
        assert!(
            !html.contains("<c>")
                && !html.contains("<h>")
                && !html.contains("<r>")
                && !html.contains("<d>")
        );
    }
}
