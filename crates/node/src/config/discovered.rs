//! Reads `discovery.file`, which has the pools that another program found. An error in one pool affects no other pool.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use shoal_ports::read_text;
use toml::{Table, Value};

use super::finding::Finding;
use super::layers::Source;
use super::{Backend, LONGEST_FILE, Loaded, Pool, Role, Settings, rules};

/// Adds the pools of the file to those of the configuration.
///
/// # Errors
/// When the file as a whole cannot be read.
pub(crate) fn add(loaded: &mut Loaded) -> Result<(), Box<Finding>> {
    let own: BTreeSet<String> = loaded.settings.pools.keys().cloned().collect();
    loaded.left_out = add_to(&mut loaded.settings)?;
    let all = loaded.settings.pools.keys().cloned();
    loaded.discovered = all.filter(|name| !own.contains(name)).collect();
    Ok(())
}

/// Adds them to the settings. Returns those that were left out.
fn add_to(settings: &mut Settings) -> Result<Vec<Finding>, Box<Finding>> {
    let Some(file) = settings.discovery.file.clone() else {
        return Ok(Vec::new());
    };
    let pools = read(&file).map_err(|problem| Box::new(finding(&file, "", problem)))?;
    let mut left_out = Vec::new();
    for (name, table) in pools {
        if settings.pools.contains_key(&name) {
            let problem =
                "the configuration has a pool of this name, which counts; this one is left out";
            left_out.push(finding(&file, &name, problem.to_owned()));
            continue;
        }
        let usable = understand(&name, table).and_then(|pool| {
            match missing_file(&pool).filter(|_| settings.node.is(Role::Worker)) {
                Some(file) => Err(format!("{} does not exist", file.display())),
                None => Ok(pool),
            }
        });
        match usable {
            Ok(pool) => {
                settings.pools.insert(name, pool);
            }
            Err(problem) => {
                left_out.push(finding(
                    &file,
                    &name,
                    format!("{problem}; this pool is left out"),
                ));
            }
        }
    }
    Ok(left_out)
}

fn read(file: &Path) -> Result<Table, String> {
    let text = match read_text(file, LONGEST_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Table::new()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let mut whole: Table = text
        .parse()
        .map_err(|error: toml::de::Error| format!("it is not TOML: {}", error.message()))?;
    let pools = match whole.remove("pools") {
        None => Table::new(),
        Some(Value::Table(pools)) => pools,
        Some(_) => return Err("pools is no table".to_owned()),
    };
    match whole.keys().next() {
        None => Ok(pools),
        Some(other) => Err(format!(
            "{other} cannot be set here: the file has [pools.<name>] alone"
        )),
    }
}

/// The pool that a table makes.
///
/// # Errors
/// Why no pool of this name can be found by others.
pub(crate) fn understand(name: &str, table: Value) -> Result<Pool, String> {
    let pool: Pool = serde_path_to_error::deserialize(table).map_err(|error| {
        let path = error.path().to_string();
        format!("{path}: {}", error.inner().message())
    })?;
    // Otherwise a user who may change the file could start programs here.
    if !matches!(pool.backend, Backend::Http(_)) {
        return Err("backend: only servers behind URLs (http) are taken from this file".to_owned());
    }
    match rules::wrong_with_pool(name, &pool) {
        None => Ok(pool),
        Some(problem) => Err(problem),
    }
}

/// A file that a pool needs and that is not there. It would hold up the change of all pools.
fn missing_file(pool: &Pool) -> Option<&Path> {
    let Backend::Http(http) = &pool.backend else {
        return None;
    };
    let tls = &http.tls;
    let named = [
        &http.headers_file,
        &http.client_credentials.client_secret_file,
        &http.client_credentials.private_key_file,
        &http.token_exchange.client_secret_file,
        &tls.authority,
        &tls.certificate,
        &tls.key,
    ];
    let mut named = named.into_iter().flatten();
    named.find(|file| !file.exists()).map(|file| file.as_path())
}

fn finding(file: &Path, pool: &str, problem: String) -> Finding {
    let setting = match pool {
        "" => "discovery.file".to_owned(),
        pool => format!("pools.{pool}"),
    };
    Finding {
        setting,
        origin: Source::File(file.to_owned()),
        position: None,
        problem,
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::add_to;
    use crate::config::{Backend, Finding, Pool, Role, Settings};

    /// The settings of an edge with the pool `own`, and what the file adds to them.
    fn added(text: Option<&str>) -> (Settings, Result<Vec<Finding>, Box<Finding>>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pools.toml");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let mut settings = Settings::default();
        settings.node.roles = vec![Role::Edge, Role::Worker];
        settings.discovery.file = Some(file);
        let own = Pool::of(Backend::Demo);
        settings.pools.insert("own".to_owned(), own);
        let left_out = add_to(&mut settings);
        (settings, left_out)
    }

    #[test]
    fn what_is_wrong_with_a_pool_concerns_no_other() {
        let missing = PathBuf::from("/nowhere/headers");
        let text = format!(
            r#"
            [pools.good]
            prefix = "good_"
            backend.http.url = "http://good.team.svc/mcp"
            [pools.own]
            backend.http.url = "http://own.team.svc/mcp"
            [pools.shell]
            backend.stdio.command = "sh"
            [pools.newer]
            backend.http = {{ url = "http://newer.team.svc/mcp", from_the_future = true }}
            [pools.no_url]
            backend.http.url = "nowhere"
            [pools.no_file]
            backend.http = {{ url = "http://x.team.svc/mcp", headers_file = {missing:?} }}
            [pools."Not Legal"]
            backend.http.url = "http://x.team.svc/mcp"
            "#
        );
        let (settings, left_out) = added(Some(&text));
        let names: Vec<&str> = settings.pools.keys().map(String::as_str).collect();
        assert_eq!(names, ["good", "own"]);
        assert!(matches!(settings.pools["own"].backend, Backend::Demo));
        assert_eq!(settings.pools["good"].prefix, "good_");
        let left_out: Vec<String> = left_out.unwrap().iter().map(ToString::to_string).collect();
        let told = left_out.join("\n");
        for word in [
            "own",
            "shell",
            "newer",
            "from_the_future",
            "no_url",
            "no_file",
            "Not Legal",
        ] {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(left_out.len(), 6, "{told}");
    }

    #[test]
    fn a_file_that_is_missing_adds_nothing() {
        for text in [None, Some(""), Some("# nothing\n")] {
            let (settings, left_out) = added(text);
            assert_eq!(settings.pools.len(), 1);
            assert_eq!(left_out.unwrap().len(), 0);
        }
    }

    #[test]
    fn a_file_that_says_more_is_refused_as_a_whole() {
        for text in ["pools = 1", "[pools", "[auth]\nmode = \"none\""] {
            let (settings, left_out) = added(Some(text));
            assert_eq!(settings.pools.len(), 1);
            assert!(left_out.is_err(), "{text}");
        }
    }
}
