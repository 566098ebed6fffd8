//! Prepares text for a model: short, and without markup.

use super::document::OperationObject;

const DESCRIPTION: usize = 1200;
const ERRORS: usize = 5;
const ERROR: usize = 80;

pub(super) fn of_operation(object: &OperationObject) -> Option<String> {
    let summary = short(object.summary.as_deref().unwrap_or_default(), DESCRIPTION);
    let about = object.description.as_deref();
    let about = short(about.unwrap_or_default(), DESCRIPTION);
    let mut told = match (summary.as_str(), about.as_str()) {
        ("", "") => return None,
        ("", about) => about.to_owned(),
        (summary, "") => summary.to_owned(),
        (summary, about) if about.starts_with(summary.trim_end_matches('.')) => about.to_owned(),
        (summary, about) => format!("{summary}\n\n{about}"),
    };
    let errors = object.responses.iter().filter_map(|(status, response)| {
        let about = response.get("description")?.as_str()?;
        let is_error = status.starts_with(['4', '5']) && !USUAL.contains(&status.as_str());
        let about = short(about, ERROR);
        (is_error && !about.is_empty()).then(|| format!("{status} {about}"))
    });
    let errors: Vec<String> = errors.take(ERRORS).collect();
    if !errors.is_empty() {
        told.push_str(&format!("\n\nErrors: {}", errors.join("; ")));
    }
    Some(told)
}

/// Errors that models understand without a description.
const USUAL: [&str; 6] = ["401", "403", "429", "500", "502", "503"];

/// Keeps whole paragraphs or sentences, at most `characters` characters.
pub(super) fn short(text: &str, characters: usize) -> String {
    if characters == 0 {
        return String::new();
    }
    // Text beyond this cannot appear in the result, even if most characters are markup.
    let beginning = match text.char_indices().nth(characters.saturating_mul(8)) {
        Some((at, _)) => &text[..at],
        None => text,
    };
    short_of_plain(&plain(beginning), characters)
}

fn short_of_plain(text: &str, characters: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters) else {
        return text.to_owned();
    };
    let beginning = &text[..end];
    let paragraph = beginning.rfind("\n\n").filter(|at| *at >= end / 4);
    let sentence = beginning.rfind(". ").map(|at| at + 1);
    let sentence = sentence.filter(|at| *at >= end / 3);
    match (paragraph, sentence) {
        (Some(at), _) | (None, Some(at)) => beginning[..at].trim_end().to_owned(),
        (None, None) => {
            let at = beginning
                .rfind(char::is_whitespace)
                .filter(|at| *at >= end / 2);
            format!("{}…", beginning[..at.unwrap_or(end)].trim_end())
        }
    }
}

pub(super) fn plain(text: &str) -> String {
    let text = match text.contains('<') {
        true => without_tags(text),
        false => text.to_owned(),
    };
    let text = match text.contains('&') {
        true => without_entities(&text),
        false => text,
    };
    let mut plain = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            empty += 1;
            continue;
        }
        if !plain.is_empty() {
            plain.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        plain.push_str(&line);
    }
    plain
}

/// Elements that begin a line.
const BLOCKS: [&str; 28] = [
    "address",
    "article",
    "blockquote",
    "br",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "important",
    "li",
    "note",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
    "warning",
];
/// Other text between angle brackets is no markup: `List<String>`, `<your key>`.
const INLINE: [&str; 38] = [
    "a", "abbr", "aside", "b", "big", "center", "cite", "code", "col", "del", "em", "figure",
    "font", "fullname", "i", "iframe", "img", "input", "ins", "kbd", "label", "mark", "nobr", "s",
    "samp", "small", "span", "strong", "sub", "sup", "tbody", "td", "th", "thead", "tt", "u",
    "var", "video",
];
const HIDDEN: [&str; 2] = ["script", "style"];

fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let tag = after.split_once('>');
        let name = after.strip_prefix('/').unwrap_or(after);
        let end = name.find(|c: char| !c.is_ascii_alphanumeric());
        let name = name[..end.unwrap_or(name.len())].to_ascii_lowercase();
        let (is_block, is_hidden) = (
            BLOCKS.contains(&name.as_str()),
            HIDDEN.contains(&name.as_str()),
        );
        match tag {
            Some((tag, after)) if is_hidden && !tag.starts_with('/') => {
                let end = format!("</{name}");
                let at = after.to_ascii_lowercase().find(&end);
                rest = at.map_or("", |at| &after[at..]);
            }
            Some((_, after)) if is_block || is_hidden || INLINE.contains(&name.as_str()) => {
                match name.as_str() {
                    "p" | "div" | "table" | "ul" | "ol" => plain.push_str("\n\n"),
                    "li" => plain.push_str("\n- "),
                    "td" | "th" => plain.push(' '),
                    _ if is_block => plain.push('\n'),
                    _ => {}
                }
                rest = after;
            }
            _ => {
                plain.push('<');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain.replace("\n- \n", "\n")
}

const LONGEST_ENTITY: usize = 10;

fn without_entities(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let known = after.split_once(';').and_then(|(name, after)| {
            Some((
                entity(name).filter(|_| name.len() <= LONGEST_ENTITY)?,
                after,
            ))
        });
        match known {
            Some((meant, after)) => {
                plain.push(meant);
                rest = after;
            }
            None => {
                plain.push('&');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(number.ok()?).filter(|c| !c.is_control());
    }
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" | "rsquo" | "lsquo" => Some('\''),
        "nbsp" => Some(' '),
        "ndash" | "mdash" => Some('–'),
        "hellip" => Some('…'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
