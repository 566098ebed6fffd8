//! All operations of a document, by the names of their tools.

use std::collections::HashMap;

use reqwest::Url;
use serde_json::Value;
use shoal_ports::{PoolCatalog, RawObjectOrEmpty, shown};
use shoal_protocol::RawJson;

use super::base;
use super::config::OpenApiConfig;
use super::document::{Document, InfoObject, OperationObject, ServerObject, beginning, text};
use super::inputs::Unsupported;
use super::names::UniqueNames;
use super::operation::{CompiledOperation, OperationSource};
use super::security::Schemes;
use super::source::DocumentSource;

/// The methods whose operations are tools.
const METHODS: [&str; 6] = ["get", "put", "post", "delete", "patch", "head"];
/// Characters of what the document says of itself.
const ABOUT: usize = 4096;
/// Operations that a message names.
const NAMED: usize = 5;

/// A document, compiled.
pub(super) struct Api {
    pub(super) base: Url,
    pub(super) operations: HashMap<String, CompiledOperation>,
    pub(super) catalog: PoolCatalog,
    /// What an operator should know: which operations are left out, and why.
    pub(super) detail: Option<String>,
}

impl Api {
    /// Compiles a document for the service at `base`, where that is configured.
    ///
    /// # Errors
    /// Why none of it can be used.
    pub(super) fn compile(
        document: &Document,
        config: &OpenApiConfig,
        source: &DocumentSource,
        base: Option<&Url>,
    ) -> Result<Self, String> {
        let mut compiler = Compiler {
            document,
            config,
            source,
            is_named: base.is_some(),
            base: match base {
                Some(base) => base.clone(),
                None => base::of_document(document, config, source)?,
            },
            schemes: Schemes::of(document, config)?,
            names: UniqueNames::default(),
            unauthorized: Vec::new(),
        };
        let mut catalog = catalog(document, config);
        let (mut operations, mut left_out) = (HashMap::new(), Vec::new());
        let paths = document.member("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten() {
            let item = match document.resolve(item) {
                Ok(item) => item,
                Err(why) => {
                    left_out.push(format!("{path}: {why}"));
                    continue;
                }
            };
            let found = METHODS
                .iter()
                .filter_map(|method| Some((*method, item.get(*method)?)));
            for (method, object) in found {
                if operations.len() >= config.operations {
                    let limit = config.operations;
                    return Err(format!(
                        "it has more than {limit} operations; raise operations, or cut the document down"
                    ));
                }
                match compiler.operation(method, path, item, object) {
                    Ok((name, operation)) => {
                        catalog.tools.push(operation.tool.clone());
                        operations.insert(name, operation);
                    }
                    Err(why) => left_out.push(format!("{} {path}: {why}", method.to_uppercase())),
                }
            }
        }
        if operations.is_empty() && left_out.is_empty() {
            return Err("it has no operations".to_owned());
        }
        for operation in &left_out {
            tracing::warn!(target: "shoal::openapi", operation, "an operation is left out");
        }
        if let Some(operations) = some_of(&compiler.unauthorized) {
            tracing::warn!(target: "shoal::openapi", operations, "called without the credentials that the document asks for; set security");
        }
        Ok(Self {
            base: compiler.base,
            operations,
            catalog,
            detail: some_of(&left_out).map(|some| format!("operations are left out: {some}")),
        })
    }
}

/// Makes tools of the operations of one document.
struct Compiler<'a> {
    document: &'a Document,
    config: &'a OpenApiConfig,
    source: &'a DocumentSource,
    base: Url,
    /// Whether the operator says where the service is.
    is_named: bool,
    schemes: Schemes,
    names: UniqueNames,
    /// Operations for which nothing is configured that they ask for.
    unauthorized: Vec<String>,
}

impl Compiler<'_> {
    /// The tool of one operation, and its name.
    fn operation(
        &mut self,
        method: &str,
        path: &str,
        item: &Value,
        object: &Value,
    ) -> Result<(String, CompiledOperation), String> {
        let object: OperationObject = self.document.read(object)?;
        self.is_here(item, &object)?;
        let own = object.security.clone();
        let credentials = self.schemes.choose(own.as_deref(), self.config)?;
        if credentials.is_none() && !self.config.has_headers() {
            self.unauthorized
                .push(format!("{} {path}", method.to_uppercase()));
        }
        let common = item.get("parameters").and_then(Value::as_array);
        let name = self
            .names
            .tool(object.operation_id.as_deref(), method, path);
        let written = OperationSource {
            method,
            // Some documents tell operations apart by what follows it, which is never sent.
            path: path.split('#').next().unwrap_or_default(),
            object,
            common: common.map_or(&[], Vec::as_slice),
            keys: &self.schemes.keys(own.as_deref()),
            credentials: credentials.unwrap_or_default(),
        };
        let compiled = CompiledOperation::compile(self.document, self.config, &name, written);
        let operation = compiled.map_err(|unsupported| match unsupported {
            Unsupported::Wrong(why) => why,
            Unsupported::TooLarge => format!(
                "its schemas have more than {} bytes; raise schema_bytes",
                self.config.schema_bytes
            ),
        })?;
        Ok((name, operation))
    }

    /// Whether an operation with servers of its own is at the service that is called.
    fn is_here(&self, item: &Value, object: &OperationObject) -> Result<(), String> {
        let of_path: Vec<ServerObject> = match item.get("servers") {
            Some(servers) => self.document.read(servers)?,
            None => Vec::new(),
        };
        let own = object.servers.first().or(of_path.first());
        let Some(server) = own.filter(|_| !self.is_named) else {
            return Ok(());
        };
        match base::of_server(server, self.config, self.source)? == self.base {
            true => Ok(()),
            false => Err(format!(
                "it has a server of its own, {:?}; make another pool for it, with base_url",
                server.url
            )),
        }
    }
}

fn catalog(document: &Document, config: &OpenApiConfig) -> PoolCatalog {
    let info = document
        .member("info")
        .and_then(|info| document.read::<InfoObject>(info).ok());
    let info = info.unwrap_or_default();
    let title = shown(&info.title, ABOUT);
    let server = serde_json::json!({ "name": title, "version": text(&info.version) });
    PoolCatalog {
        server_info: Some(RawJson::of(&server)),
        instructions: info.description.map(|about| beginning(&about, ABOUT)),
        capabilities: RawObjectOrEmpty(RawJson::from_static(r#"{"tools":{"listChanged":true}}"#)),
        headers: config.client().wanted(),
        ..PoolCatalog::default()
    }
}

/// The first of them, and how many more there are.
fn some_of(all: &[String]) -> Option<String> {
    let named = all
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>();
    let named = named.join("; ");
    match all.len() {
        0 => None,
        count if count <= NAMED => Some(named),
        count => Some(format!("{named} and {} more", count - NAMED)),
    }
}

#[cfg(test)]
mod tests;
