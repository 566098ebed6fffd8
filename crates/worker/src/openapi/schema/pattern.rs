//! Translates regular expressions of many languages to ECMAScript with the flag `u`, which clients use.

use std::cell::RefCell;
use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::json;

const LONGEST: usize = 4096;
const COMPILED: usize = 1 << 20;
const ESCAPES: &str = "dDwWsStnvfrbBcxupP0123456789";
const SYNTAX: &str = "^$\\.*+?()[]{}|/";

/// Caches, because many schemas share patterns and compiling is slow.
#[derive(Default)]
pub(in crate::openapi) struct Patterns(RefCell<HashMap<String, Option<String>>>);

impl Patterns {
    /// `None` if clients could not compile the pattern.
    pub(super) fn mended(&self, written: &str) -> Option<String> {
        if let Some(known) = self.0.borrow().get(written) {
            return known.clone();
        }
        let mended = mended(written);
        let mut known = self.0.borrow_mut();
        known.insert(written.to_owned(), mended.clone());
        mended
    }
}

fn mended(written: &str) -> Option<String> {
    if written.len() > LONGEST {
        return None;
    }
    let pattern = translated(undelimited(written)?)?;
    regress::Regex::with_flags(&pattern, "u").ok()?;
    let patterns = PatternOptions::fancy_regex().size_limit(COMPILED);
    let options = jsonschema::options().with_pattern_options(patterns);
    let compiles = options.build(&json!({ "pattern": pattern })).is_ok();
    compiles.then_some(pattern)
}

/// Removes the delimiters of `/pattern/flags`. `None` if the flags change the meaning.
fn undelimited(written: &str) -> Option<&str> {
    let Some(inner) = written.strip_prefix('/') else {
        return Some(written);
    };
    match inner.rsplit_once('/') {
        Some((pattern, flags)) if !pattern.ends_with('\\') => {
            let is_flags = flags.chars().all(|c| "dgimsuxvy".contains(c));
            match is_flags {
                true if flags.contains(['i', 'm', 's', 'x']) => None,
                true => Some(pattern),
                false => Some(written),
            }
        }
        _ => Some(written),
    }
}

fn translated(pattern: &str) -> Option<String> {
    let mut translation = Translation {
        rest: pattern,
        written: String::with_capacity(pattern.len()),
        class: None,
    };
    while !translation.rest.is_empty() {
        translation.step()?;
    }
    Some(translation.written)
}

struct Translation<'a> {
    rest: &'a str,
    written: String,
    class: Option<bool>,
}

impl Translation<'_> {
    fn step(&mut self) -> Option<()> {
        let c = self.rest.chars().next()?;
        match (c, self.class) {
            ('\\', _) => return self.escape(),
            (_, Some(after_set)) => return self.in_class(c, after_set),
            ('[', None) => self.open_class(),
            ('(', None) => self.group(),
            ('{', None) => self.brace(),
            ('}' | ']', None) => self.put(c, 1, true),
            _ => self.put(c, c.len_utf8(), false),
        }
        Some(())
    }

    fn put(&mut self, c: char, bytes: usize, escaped: bool) {
        if escaped {
            self.written.push('\\');
        }
        self.written.push(c);
        self.rest = &self.rest[bytes..];
    }

    fn instead(&mut self, bytes: usize, written: &str) {
        self.written.push_str(written);
        self.rest = &self.rest[bytes..];
    }

    fn escape(&mut self) -> Option<()> {
        let c = self.rest[1..].chars().next()?;
        let bytes = 1 + c.len_utf8();
        let in_class = self.class.is_some();
        let is_set = "dDwWsSpP".contains(c);
        match c {
            'A' if !in_class => self.instead(bytes, "^"),
            'Z' | 'z' if !in_class => self.instead(bytes, "$"),
            'h' if in_class => self.instead(bytes, " \\t"),
            'h' => self.instead(bytes, "[ \\t]"),
            'x' if self.rest[2..].starts_with('{') => {
                let end = self.rest.find('}')? + 1;
                let taken = format!("\\u{}", &self.rest[2..end]);
                self.instead(end, &taken);
            }
            'B' if in_class => return None,
            '-' if in_class => self.instead(bytes, "\\-"),
            c if ESCAPES.contains(c) || SYNTAX.contains(c) => {
                let named = self.rest[bytes..].starts_with('{') && "pPu".contains(c);
                let end = self.rest.find('}').filter(|_| named).map(|at| at + 1);
                let bytes = end.unwrap_or(bytes);
                let taken = self.rest[..bytes].to_owned();
                self.instead(bytes, &taken);
            }
            // With the flag `u`, ECMAScript refuses this escape, and the character needs none.
            c if c.is_ascii_punctuation() || c == ' ' || !c.is_ascii() => {
                self.put_plain(c, bytes);
            }
            _ => return None,
        }
        if in_class {
            self.class = Some(is_set);
        }
        Some(())
    }

    fn put_plain(&mut self, c: char, bytes: usize) {
        self.written.push(c);
        self.rest = &self.rest[bytes..];
    }

    fn open_class(&mut self) {
        self.put('[', 1, false);
        if self.rest.starts_with('^') {
            self.put('^', 1, false);
        }
        // In other languages, a closing bracket at the start of a class is literal.
        if self.rest.starts_with(']') && self.rest[1..].contains(']') {
            self.put(']', 1, true);
        }
        self.class = Some(false);
    }

    fn in_class(&mut self, c: char, after_set: bool) -> Option<()> {
        if c == ']' {
            self.put(c, 1, false);
            self.class = None;
            return Some(());
        }
        if let Some((name, set)) = POSIX.iter().find(|(name, _)| self.rest.starts_with(name)) {
            self.instead(name.len(), set);
            self.class = Some(true);
            return Some(());
        }
        // An intersection, which ECMAScript supports only with the flag `v`.
        if self.rest.starts_with("&&[") {
            return None;
        }
        let next = &self.rest[c.len_utf8()..];
        let before_set = next
            .strip_prefix('\\')
            .is_some_and(|next| next.starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']));
        match c {
            // Next to a set, a hyphen forms no range.
            '-' if after_set || before_set => self.put(c, 1, true),
            '[' => self.put(c, 1, true),
            c => self.put(c, c.len_utf8(), false),
        }
        self.class = Some(false);
        Some(())
    }

    fn group(&mut self) {
        if self.rest.starts_with("(?P<") {
            self.instead(4, "(?<");
        } else {
            self.put('(', 1, false);
        }
    }

    fn brace(&mut self) {
        let inner = self.rest[1..].split_once('}').map(|(inner, _)| inner);
        let (least, most) = match inner {
            Some(inner) => inner.split_once(',').unwrap_or((inner, "")),
            None => ("?", ""),
        };
        let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let counts = is_count(least) && is_count(most) && !(least.is_empty() && most.is_empty());
        match (counts, least.is_empty()) {
            (true, true) => self.instead(1, "{0"),
            (true, false) => {
                let bytes = inner.map_or(0, str::len) + 2;
                let whole = self.rest[..bytes].to_owned();
                self.instead(bytes, &whole);
            }
            (false, _) => self.put('{', 1, true),
        }
        if counts && least.is_empty() {
            let bytes = self.rest.find('}').map_or(0, |at| at + 1);
            let rest = self.rest[..bytes].to_owned();
            self.instead(bytes, &rest);
        }
    }
}

const POSIX: [(&str, &str); 8] = [
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:digit:]", "0-9"),
    ("[:lower:]", "a-z"),
    ("[:punct:]", "!-\\/:-@\\[-`\\{-~"),
    ("[:space:]", "\\s"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9A-Fa-f"),
];

#[cfg(test)]
mod tests;
