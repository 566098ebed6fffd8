use std::ffi::OsString;
use std::path::{Path, PathBuf};

use shoal_worker::{HttpTls, StdioConfig, TokenExchangeConfig};

use super::finding::Finding;
use super::layers::Layers;
use super::setting_path::SettingPath;
use super::{Backend, PortTls, Role, SecretSource, Settings};
use crate::given;

/// Finds files and programs that this machine lacks. They may be missing where an operator only checks a configuration.
/// A process that needs one fails to start, or retries.
pub(super) fn absent(settings: &Settings, layers: &Layers) -> Vec<Finding> {
    let mut named = NamedFiles::default();
    named.of_ports(settings);
    named.of_auth(settings);
    for (setting, file) in of_redis(settings) {
        named.add(setting, Some(file));
    }
    named.add("policy.file", settings.policy.file.as_deref());
    if settings.node.is(Role::Worker) {
        named.of_pools(settings);
    }
    let finding = |(setting, problem)| Finding::of_setting(&setting, problem, layers);
    let gone = named.files.into_iter().filter_map(|(setting, file)| {
        let problem = unreadable(&file)?;
        Some((setting, problem))
    });
    gone.chain(named.programs).map(finding).collect()
}

pub(crate) fn is_there(file: Option<&Path>) -> bool {
    file.is_some_and(|file| file.exists())
}

pub(crate) fn of_redis(settings: &Settings) -> Vec<(&'static str, &Path)> {
    if settings.node.store.is_memory() {
        return Vec::new();
    }
    let redis = &settings.redis;
    let files = [
        ("redis.password", in_file(redis.password.as_ref())),
        (
            "redis.sentinel.password",
            in_file(redis.sentinel.password.as_ref()),
        ),
        ("redis.tls.authority", redis.tls.authority.as_deref()),
        ("redis.tls.certificate", redis.tls.certificate.as_deref()),
        ("redis.tls.key", redis.tls.key.as_deref()),
    ];
    let named = |(setting, file): (_, Option<_>)| Some((setting, file?));
    files.into_iter().filter_map(named).collect()
}

fn in_file(secret: Option<&SecretSource>) -> Option<&Path> {
    match secret? {
        SecretSource::File(file) => Some(file),
        SecretSource::Value(_) => None,
    }
}

fn unreadable(file: &Path) -> Option<String> {
    // Relative paths start at the working directory, which often is not the file's that names them.
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let shown = path.display();
    match std::fs::metadata(file) {
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(format!(
            "{shown} is not on this machine, so it was not checked; Shoal needs it where it runs"
        )),
        Err(error) => Some(format!("{shown} cannot be read: {error}")),
    }
}

#[derive(Default)]
struct NamedFiles {
    files: Vec<(SettingPath, PathBuf)>,
    programs: Vec<(SettingPath, String)>,
}

impl NamedFiles {
    fn add(&mut self, setting: impl Into<SettingPath>, file: Option<&Path>) {
        self.files
            .extend(file.map(|file| (setting.into(), file.to_owned())));
    }

    fn of_ports(&mut self, settings: &Settings) {
        let links = &settings.cluster.tls;
        self.add("cluster.tls.certificate", links.certificate.as_deref());
        self.add("cluster.tls.key", links.key.as_deref());
        self.add("cluster.tls.authority", links.authority.as_deref());
        let server = &settings.server;
        let mut port = |table: &str, tls: &PortTls| {
            self.add(format!("{table}.certificate"), tls.certificate.as_deref());
            self.add(format!("{table}.key"), tls.key.as_deref());
            self.add(
                format!("{table}.client_authority"),
                tls.client_authority.as_deref(),
            );
        };
        port("server.tls", &server.tls);
        port("server.admin_tls", &server.admin_tls);
    }

    fn of_auth(&mut self, settings: &Settings) {
        if !settings.node.is(Role::Edge) {
            return;
        }
        let auth = &settings.auth;
        self.add("auth.tokens_file", auth.tokens_file.as_deref());
        for (at, issuer) in auth.issuers.iter().enumerate() {
            let setting = format!("auth.issuers[{at}]");
            self.add(format!("{setting}.authority"), issuer.authority.as_deref());
            let asked = issuer.introspection.as_ref();
            let secret = asked.and_then(|asked| asked.client_secret_file.as_deref());
            self.add(
                format!("{setting}.introspection.client_secret_file"),
                secret,
            );
        }
    }

    fn of_pools(&mut self, settings: &Settings) {
        for (name, pool) in &settings.pools {
            let backend = format!("pools.{name}.backend");
            match &pool.backend {
                Backend::Stdio(stdio) => self.of_program(&format!("{backend}.stdio"), stdio),
                Backend::Http(http) => {
                    let table = format!("{backend}.http");
                    self.add(
                        format!("{table}.headers_file"),
                        http.headers_file.as_deref(),
                    );
                    self.of_client(&table, &http.tls, &http.token_exchange);
                    let own = &http.client_credentials;
                    let table = format!("{table}.client_credentials");
                    let secret = own.client_secret_file.as_deref();
                    self.add(format!("{table}.client_secret_file"), secret);
                    let key = own.private_key_file.as_deref();
                    self.add(format!("{table}.private_key_file"), key);
                }
                Backend::OpenApi(openapi) => {
                    let table = format!("{backend}.openapi");
                    let document = openapi.document.as_str();
                    let file = (!document.contains("://")).then(|| Path::new(document));
                    self.add(format!("{table}.document"), file);
                    self.add(
                        format!("{table}.headers_file"),
                        openapi.headers_file.as_deref(),
                    );
                    for (scheme, credential) in &openapi.security {
                        let security = SettingPath::parse(&table).key("security");
                        let setting = security.key(scheme).key("secret_file");
                        self.add(setting, credential.secret_file.as_deref());
                    }
                    self.of_client(&table, &openapi.tls, &openapi.token_exchange);
                }
                Backend::Demo | Backend::Conformance | Backend::Handler => {}
            }
        }
    }

    fn of_client(&mut self, table: &str, tls: &HttpTls, exchange: &TokenExchangeConfig) {
        self.add(format!("{table}.tls.authority"), tls.authority.as_deref());
        self.add(
            format!("{table}.tls.certificate"),
            tls.certificate.as_deref(),
        );
        self.add(format!("{table}.tls.key"), tls.key.as_deref());
        let secret = exchange.client_secret_file.as_deref();
        self.add(format!("{table}.token_exchange.client_secret_file"), secret);
    }

    fn of_program(&mut self, table: &str, stdio: &StdioConfig) {
        self.add(format!("{table}.cwd"), stdio.cwd.as_deref());
        let relative = Path::new(&stdio.command).is_relative() && stdio.command.contains('/');
        if stdio.command.is_empty() || relative && stdio.cwd.is_some() {
            return;
        }
        let path = stdio
            .env
            .get("PATH")
            .map(|path| OsString::from(path.expose()));
        let path = path
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        if let Err(reason) = given::find(&stdio.command, &path) {
            let problem = format!(
                "the program {:?} cannot be started on this machine: {reason}",
                stdio.command
            );
            let setting = SettingPath::parse(&format!("{table}.command"));
            self.programs.push((setting, problem));
        }
    }
}
