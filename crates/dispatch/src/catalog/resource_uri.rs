use percent_encoding::percent_decode_str;
use url::Url;

/// A URI in all spellings that a server may read: literal, normalised, decoded, or only its path. All of them lead to
/// the same resource.
#[derive(Clone, Debug)]
pub(super) struct ResourceUri {
    pub(super) whole: Vec<String>,
    pub(super) bare: Vec<String>,
    /// The [`folded`] spellings.
    pub(super) loose: Vec<String>,
}

impl ResourceUri {
    /// `None` if the spellings may lead to different resources.
    pub(super) fn read(uri: &str) -> Option<Self> {
        let decoded = percent_decode_str(uri).decode_utf8().ok()?;
        // URL parsers drop some control characters and read a backslash as a slash.
        let is_odd = |letter: char| letter.is_control() || letter == '\\';
        if uri.trim() != uri || decoded.contains(is_odd) || has_escape(&decoded) {
            return None;
        }
        // The target of dot segments depends on the resolver and on links.
        let leads_elsewhere = |part| matches!(without_parameters(part), "." | "..");
        if decoded.split('/').any(leads_elsewhere) {
            return None;
        }
        let url = Url::parse(uri).ok().filter(|url| is_usual(url, uri))?;
        let [_, _, bare] = cuts(&url);
        let mut anonymous = url.clone();
        // Fails only for a URI without a host.
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

pub(super) fn normal(pattern: &str) -> String {
    let Ok(url) = Url::parse(pattern) else {
        return decoded(pattern);
    };
    let text = url.as_str();
    // Parsing adds a path to a bare host.
    let text = match pattern.ends_with('*') {
        true => text.strip_suffix('/').unwrap_or(text),
        false => text,
    };
    decoded(text)
}

/// Some servers ignore case and redundant slashes. Letters go through upper case, because `ſ` is a small `S`.
pub(super) fn folded(text: &str) -> String {
    let (mut folded, mut slashes, mut most) = (String::with_capacity(text.len()), 0, 1);
    for letter in text.chars() {
        if letter == '/' {
            slashes += 1;
            if slashes > most {
                continue;
            }
        } else {
            // The slashes after the scheme tell whether the URI has a host.
            (slashes, most) = (0, if letter == ':' { 3 } else { 1 });
        }
        folded.extend(letter.to_uppercase().flat_map(char::to_lowercase));
    }
    folded
}

/// Removes a segment's parameters (`secret;v=1`, RFC 3986, 3.3), which some servers ignore.
fn without_parameters(part: &str) -> &str {
    part.split(';').next().unwrap_or_default()
}

fn cuts(url: &Url) -> [Url; 3] {
    let (mut whole, mut bare) = (url.clone(), url.clone());
    whole.set_fragment(None);
    bare.set_fragment(None);
    bare.set_query(None);
    [url.clone(), whole, bare]
}

/// Decodes completely, and except for encoded slashes, which a template's value may contain.
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

fn has_escape(decoded: &str) -> bool {
    let mut triples = decoded.as_bytes().windows(3);
    triples.any(|it| it[0] == b'%' && it[1].is_ascii_hexdigit() && it[2].is_ascii_hexdigit())
}

fn is_usual(url: &Url, uri: &str) -> bool {
    let after = uri.split_once(':').map_or("", |(_, after)| after);
    match url.scheme() {
        // Servers do not have another machine's files, and most ignore the host.
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
