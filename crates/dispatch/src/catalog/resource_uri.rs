//! URIs in the spelling in which they are compared.

use percent_encoding::percent_decode_str;
use url::Url;

/// A URI in all the ways in which a server may read it.
///
/// A server may take a URI as it is written, normalise it, decode it, or look at its path alone. What leads elsewhere by
/// one way of reading than by another cannot be compared with anything, and has no value of this type.
#[derive(Clone, Debug)]
pub(super) struct ResourceUri {
    /// As a whole.
    pub(super) whole: Vec<String>,
    /// Without query and fragment.
    pub(super) bare: Vec<String>,
    /// All that some server may take it for, [`folded`].
    pub(super) loose: Vec<String>,
}

impl ResourceUri {
    /// Reads a URI, if it can be read in one way.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let decoded = percent_decode_str(uri).decode_utf8().ok()?;
        // Parsers drop some of these, and take a backslash for a slash.
        let is_odd = |letter: char| letter.is_control() || letter == '\\';
        if uri.trim() != uri || decoded.contains(is_odd) || has_escape(&decoded) {
            return None;
        }
        // Where these lead depends on who resolves them, and in a file system on what is there.
        let leads_elsewhere = |part| matches!(without_parameters(part), "." | "..");
        if decoded.split('/').any(leads_elsewhere) {
            return None;
        }
        let url = Url::parse(uri).ok().filter(|url| is_usual(url, uri))?;
        let [_, _, bare] = cuts(&url);
        let mut anonymous = url.clone();
        // Refused where there is no host, and so none of these.
        let _ = anonymous.set_username("");
        let _ = anonymous.set_password(None);
        let _ = anonymous.set_port(None);
        let all = [&url, &anonymous].into_iter().flat_map(cuts);
        let mut loose: Vec<String> = all.flat_map(|url| readings(&url)).collect();
        let bare_parts: Vec<String> = (loose.iter().filter(|text| text.contains(';')))
            .map(|text| {
                let parts: Vec<&str> = text.split('/').map(without_parameters).collect();
                parts.join("/")
            })
            .collect();
        loose.extend(bare_parts);
        loose.iter_mut().for_each(|text| *text = folded(text));
        loose.sort_unstable();
        loose.dedup();
        Some(Self {
            whole: readings(&url),
            bare: readings(&bare),
            loose,
        })
    }
}

/// A pattern or a template as [`ResourceUri`] spells what it stands for.
pub(super) fn normal(pattern: &str) -> String {
    let Ok(url) = Url::parse(pattern) else {
        return decoded(pattern);
    };
    let text = url.as_str();
    // To a host alone a path is added, which a star at its end stands for already.
    let text = match pattern.ends_with('*') {
        true => text.strip_suffix('/').unwrap_or(text),
        false => text,
    };
    decoded(text)
}

/// Without what servers may overlook: upper case, as some file systems do (by way of it, since `ſ` is a small `S`), and
/// slashes that say nothing.
pub(super) fn folded(text: &str) -> String {
    let (mut folded, mut slashes, mut most) = (String::with_capacity(text.len()), 0, 1);
    for letter in text.chars() {
        if letter == '/' {
            slashes += 1;
            if slashes > most {
                continue;
            }
        } else {
            // Those before a host say that there is one, or none.
            (slashes, most) = (0, if letter == ':' { 3 } else { 1 });
        }
        folded.extend(letter.to_uppercase().flat_map(char::to_lowercase));
    }
    folded
}

/// A part of a path as those read it who take parameters out of it (`secret;v=1`, RFC 3986, 3.3).
fn without_parameters(part: &str) -> &str {
    part.split(';').next().unwrap_or_default()
}

/// The URI, without its fragment, and without its query too.
fn cuts(url: &Url) -> [Url; 3] {
    let (mut whole, mut bare) = (url.clone(), url.clone());
    whole.set_fragment(None);
    bare.set_fragment(None);
    bare.set_query(None);
    [url.clone(), whole, bare]
}

/// Decoded; and with its encoded slashes as they are, which for templates are part of a value.
fn readings(url: &Url) -> Vec<String> {
    let text = url.as_str().replace("%2f", "%2F");
    let mut readings = vec![decoded(&text)];
    if text.contains("%2F") {
        let parts: Vec<String> = text.split("%2F").map(decoded).collect();
        readings.push(parts.join("%2F"));
    }
    readings
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Whether decoding once more would change it.
fn has_escape(decoded: &str) -> bool {
    let mut triples = decoded.as_bytes().windows(3);
    triples.any(|it| it[0] == b'%' && it[1].is_ascii_hexdigit() && it[2].is_ascii_hexdigit())
}

/// Whether the URI says its host as everybody reads it.
fn is_usual(url: &Url, uri: &str) -> bool {
    let after = uri.split_once(':').map_or("", |(_, after)| after);
    match url.scheme() {
        // No server has the files of another machine, and most do not look at its name.
        "file" => after.starts_with('/') && !url.has_host() && !url.path().contains("//"),
        _ if url.is_special() => {
            let host = after.strip_prefix("//").unwrap_or_default();
            !host.is_empty() && !host.starts_with('/') && !ends_in_a_dot(url)
        }
        _ => true,
    }
}

fn ends_in_a_dot(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host.ends_with('.'))
}
