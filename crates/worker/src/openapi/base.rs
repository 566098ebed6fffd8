//! The base URL of the service: the operator's, else the document's `servers`.

use reqwest::Url;

use super::config::{BASE, OpenApiConfig};
use super::document::{Document, ServerObject, text};
use super::source::DocumentSource;
use crate::http_client::check_url;

/// Fails if the URL is unknown, or if the document would send credentials to another origin.
pub(super) fn of_document(
    document: &Document,
    config: &OpenApiConfig,
    source: &DocumentSource,
) -> Result<Url, String> {
    let servers = document.member("servers");
    let servers: Vec<ServerObject> = servers
        .map(|servers| document.read(servers))
        .transpose()?
        .unwrap_or_default();
    let base = match servers.first() {
        Some(server) => of_server(server, config, source)?,
        // Without servers, OpenAPI's default is `/`.
        None => within(source, "/")?,
    };
    let DocumentSource::Url(from) = source else {
        return Ok(base);
    };
    if config.has_credentials() && base.origin() != from.origin() {
        return Err(format!(
            "the document, which is at {}, names a server at {}: set base_url (--base-url), so that credentials go only where you say",
            from.origin().ascii_serialization(),
            base.origin().ascii_serialization()
        ));
    }
    Ok(base)
}

pub(super) fn of_server(
    server: &ServerObject,
    config: &OpenApiConfig,
    source: &DocumentSource,
) -> Result<Url, String> {
    let mut url = server.url.clone();
    for (name, variable) in &server.variables {
        let place = format!("{{{name}}}");
        if !url.contains(&place) {
            continue;
        }
        let chosen = config.server_variables.get(name).cloned();
        let usual = variable.default.as_ref().map(text);
        let value = chosen.or(usual).ok_or_else(|| {
            format!(
                "the variable {name:?} of the server's URL has no value; set it in server_variables"
            )
        })?;
        if !variable.choices.is_empty()
            && !variable.choices.iter().any(|choice| text(choice) == value)
        {
            return Err(format!(
                "the document does not allow {value:?} for the variable {name:?} of the server's URL"
            ));
        }
        url = url.replace(&place, &value);
    }
    within(source, &url)
}

fn within(source: &DocumentSource, url: &str) -> Result<Url, String> {
    let absolute = match source {
        DocumentSource::Url(from) => from.join(url).map(String::from),
        // A file has no scheme that the URL could inherit.
        DocumentSource::File(_) if url.starts_with("//") => Ok(format!("https:{url}")),
        DocumentSource::File(_) => Url::parse(url).map(String::from),
    };
    let absolute = absolute.map_err(|_| {
        format!(
            "the document does not say where the service is (its server is {url:?}); set base_url (--base-url)"
        )
    })?;
    let mut url = check_url(&absolute, BASE)?;
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
