use std::collections::HashMap;
use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::{Map, Value};
use shoal_ports::{PoolCatalog, RawObjectOrEmpty, shown};
use shoal_protocol::RawJson;

use super::base;
use super::choice::{ToolChoice, is_chosen};
use super::config::OpenApiConfig;
use super::document::{Document, InfoObject, OperationObject, ServerObject, beginning, text};
use super::inputs::Unsupported;
use super::names::UniqueNames;
use super::operation::{CompiledOperation, OperationSource};
use super::schema::Patterns;
use super::security::Schemes;
use super::size::ListSize;
use super::source::DocumentSource;

/// The methods of tools. `TRACE` is missing, because its answer would show credentials.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "patch", "head", "options", "query",
];
const NO_TOOLS: [&str; 2] = ["CONNECT", "TRACE"];
const NO_TRACE: &str =
    "a tool must not use this method: its answer could show the request's credentials";
const ABOUT: usize = 4096;
const OUTPUTS: usize = 1024 * 1024;
const LEAST_OUTPUT: usize = 2048;
const CONVERSION: Duration = Duration::from_secs(60);
const TOO_LONG: &str = "the operations before it took too long to become tools; choose some with tools.allow, tags or paths";
const NAMED: usize = 5;
const REASON: usize = 400;
const OPERATION: usize = 200;

pub(super) struct Api {
    pub(super) base: Url,
    pub(super) operations: HashMap<String, CompiledOperation>,
    pub(super) catalog: PoolCatalog,
    pub(super) detail: Option<String>,
    pub(super) size: ListSize,
}

impl Api {
    /// Compiles a document for the service at `base`, or at the server that the document names.
    ///
    /// # Errors
    /// Why no operation can be used.
    pub(super) fn compile(
        document: &Document,
        config: &OpenApiConfig,
        choice: &ToolChoice,
        source: &DocumentSource,
        base: Option<&Url>,
    ) -> Result<Self, String> {
        let paths = document.member("paths").and_then(Value::as_object);
        let mut compiler = Compiler {
            document,
            config,
            choice,
            source,
            is_named: base.is_some(),
            base: match base {
                Some(base) => base.clone(),
                None => base::of_document(document, config, source)?,
            },
            schemes: Schemes::of(document, config)?,
            names: UniqueNames::default(),
            unauthorized: Vec::new(),
            left_out: Vec::new(),
            operations: HashMap::new(),
            catalog: catalog(document, config),
            size: ListSize::default(),
            found: 0,
            patterns: Patterns::default(),
            output_bytes: output_bytes(paths),
            began: Instant::now(),
        };
        for (path, item) in paths.into_iter().flatten() {
            if path.starts_with("x-") {
                continue;
            }
            match document.resolve(item) {
                Ok(item) => compiler.path(path, item),
                Err(why) => compiler.leave_out(path, &why),
            }
        }
        compiler.finish()
    }
}

struct Compiler<'a> {
    document: &'a Document,
    config: &'a OpenApiConfig,
    choice: &'a ToolChoice,
    source: &'a DocumentSource,
    base: Url,
    is_named: bool,
    schemes: Schemes,
    names: UniqueNames,
    unauthorized: Vec<String>,
    left_out: Vec<String>,
    operations: HashMap<String, CompiledOperation>,
    catalog: PoolCatalog,
    size: ListSize,
    found: usize,
    patterns: Patterns,
    output_bytes: usize,
    began: Instant,
}

impl Compiler<'_> {
    fn path(&mut self, path: &str, item: &Value) {
        for method in METHODS {
            if let Some(object) = item.get(method) {
                self.add(&method.to_ascii_uppercase(), path, item, object);
            }
        }
        if item.get("trace").is_some() {
            self.found += 1;
            self.leave_out(&format!("TRACE {path}"), NO_TRACE);
        }
        let others = item.get("additionalOperations").and_then(Value::as_object);
        for (method, object) in others.into_iter().flatten() {
            match NO_TOOLS.iter().any(|it| it.eq_ignore_ascii_case(method)) {
                false => self.add(method, path, item, object),
                true => self.leave_out(&format!("{method} {path}"), NO_TRACE),
            }
        }
    }

    fn add(&mut self, method: &str, path: &str, item: &Value, object: &Value) {
        self.found += 1;
        if self.began.elapsed() > CONVERSION {
            return self.leave_out(&format!("{method} {path}"), TOO_LONG);
        }
        let (name, operation) = match self.operation(method, path, item, object) {
            Ok(Some(made)) => made,
            Ok(None) => return,
            Err(why) => return self.leave_out(&format!("{method} {path}"), &why),
        };
        let size = self.size.with(&operation);
        let limit = self.config.tools_bytes;
        if size.bytes > limit {
            let why = format!(
                "the tools have more than {limit} bytes together; choose some with tools.allow, tags or paths, or raise tools_bytes"
            );
            return self.leave_out(&format!("{method} {path}"), &why);
        }
        self.size = size;
        let cut = operation.cut.iter();
        self.catalog
            .cut
            .extend(cut.map(|cut| format!("{name}: {cut}")));
        self.catalog.tools.push(operation.tool.clone());
        self.operations.insert(name, operation);
    }

    fn leave_out(&mut self, operation: &str, why: &str) {
        let operation = beginning(operation, OPERATION);
        self.left_out
            .push(beginning(&format!("{operation}: {why}"), REASON));
    }

    fn finish(mut self) -> Result<Api, String> {
        if self.found == 0 && self.left_out.is_empty() {
            return Err("it has no operations".to_owned());
        }
        if self.operations.is_empty() {
            return Err(match some_of(&self.left_out) {
                Some(some) => format!("none of its operations can be a tool: {some}"),
                None => format!(
                    "none of its {} operations is chosen; change tools.allow, tools.deny, tags or paths",
                    self.found
                ),
            });
        }
        for tool in &self.catalog.cut {
            tracing::info!(target: "shoal::openapi", tool, "a schema is too large to be listed whole");
        }
        for operation in &self.left_out {
            tracing::warn!(target: "shoal::openapi", operation, "an operation is left out");
        }
        if let Some(operations) = some_of(&self.unauthorized) {
            tracing::warn!(target: "shoal::openapi", operations, "called without the credentials that the document asks for; set security");
        }
        self.catalog.left_out = std::mem::take(&mut self.left_out);
        let detail = some_of(&self.catalog.left_out).map(|some| {
            format!("operations are left out (`shoal tools --left-out` lists them): {some}")
        });
        Ok(Api {
            base: self.base,
            operations: self.operations,
            catalog: self.catalog,
            detail,
            size: self.size,
        })
    }

    fn operation(
        &mut self,
        method: &str,
        path: &str,
        item: &Value,
        object: &Value,
    ) -> Result<Option<(String, CompiledOperation)>, String> {
        let object: OperationObject = self.document.read(object)?;
        // An excluded operation also takes its name, so that other names do not depend on the
        // choice.
        let lower = method.to_ascii_lowercase();
        let name = self
            .names
            .tool(object.operation_id.as_deref(), &lower, path);
        if !is_chosen(self.config, path, &object.tags) || !self.choice.has(&name) {
            return Ok(None);
        }
        self.is_here(item, &object)?;
        let own = object.security.clone();
        let credentials = self.schemes.choose(own.as_deref(), self.config)?;
        if credentials.is_none() && !self.config.has_headers() {
            self.unauthorized.push(format!("{method} {path}"));
        }
        let common = item.get("parameters").map(|all| self.document.resolve(all));
        let common = common.transpose()?.and_then(Value::as_array);
        let written = OperationSource {
            method,
            path,
            object,
            common: common.map_or(&[], Vec::as_slice),
            keys: &self.schemes.keys(own.as_deref()),
            credentials: credentials.unwrap_or_default(),
            patterns: &self.patterns,
            output_bytes: self.output_bytes,
        };
        let compiled = CompiledOperation::compile(self.document, self.config, &name, written);
        let operation = compiled.map_err(|unsupported| match unsupported {
            Unsupported::Wrong(why) => why,
            Unsupported::TooLarge => format!(
                "its schemas have more than {} bytes; raise schema_bytes",
                self.config.schema_bytes
            ),
        })?;
        Ok(Some((name, operation)))
    }

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

fn output_bytes(paths: Option<&Map<String, Value>>) -> usize {
    let items = paths.into_iter().flat_map(Map::values);
    let operations = items.map(|item| METHODS.iter().filter(|method| item.get(**method).is_some()));
    let operations: usize = operations.map(Iterator::count).sum();
    (OUTPUTS / operations.max(1)).max(LEAST_OUTPUT)
}

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
