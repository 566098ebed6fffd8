//! Reads the pools in `discovery.file`, which another program writes. An error in one pool affects no other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use shoal_ports::kubernetes::MOST_POOLS;
use shoal_ports::read_text;
use shoal_protocol::is_unseen;
use toml::{Table, Value};

use super::finding::Finding;
use super::layers::Source;
use super::parse::parse;
use super::{Backend, LONGEST_FILE, Loaded, Pool, Role, Settings, rules};

/// The settings of `backend.http` that the file may contain.
const HTTP: [&str; 2] = ["url", "headers_file"];

/// Maximum characters of a pool's name, and of a problem, in the log.
const LONGEST_NAME: usize = 80;
const LONGEST_PROBLEM: usize = 1000;

/// Adds the file's pools to the configuration.
///
/// # Errors
///
/// If the file cannot be read as a whole.
pub(crate) fn add(loaded: &mut Loaded) -> Result<(), Box<Finding>> {
    let own: BTreeSet<String> = loaded.settings.pools.keys().cloned().collect();
    loaded.left_out = add_to(&mut loaded.settings)?;
    let all = loaded.settings.pools.keys().cloned();
    loaded.discovered = all.filter(|name| !own.contains(name)).collect();
    Ok(())
}

fn add_to(settings: &mut Settings) -> Result<Vec<Finding>, Box<Finding>> {
    let Some(file) = settings.discovery.file.clone() else {
        return Ok(Vec::new());
    };
    let pools = read(&file).map_err(|problem| Box::new(finding(&file, "", problem)))?;
    let mut left_out = Vec::new();
    let pools: BTreeMap<String, Value> = pools.into_iter().collect();
    if pools.len() > MOST_POOLS {
        let problem = format!(
            "it has {} pools, and Shoal takes {MOST_POOLS} from this file: the last {} by name are left out. Remove pools from the \
             file, or put some into the configuration",
            pools.len(),
            pools.len() - MOST_POOLS
        );
        left_out.push(finding(&file, "", problem));
    }
    for (name, table) in pools.into_iter().take(MOST_POOLS) {
        if settings.pools.contains_key(&name) {
            let problem =
                "the configuration has a pool of this name, which counts; this one is left out";
            left_out.push(finding(&file, &name, problem.to_owned()));
            continue;
        }
        let usable = understand(&name, table).and_then(|pool| {
            check_headers(&file, &pool, settings.node.is(Role::Worker))?;
            Ok(pool)
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
        Some(_) => return Err("pools is not a table".to_owned()),
    };
    match whole.keys().next() {
        None => Ok(pools),
        Some(other) => Err(format!(
            "{other} cannot be set here: this file may contain only [pools.<name>]"
        )),
    }
}

/// # Errors
///
/// Why the file may not define this pool.
pub(crate) fn understand(name: &str, table: Value) -> Result<Pool, String> {
    // With other settings, a user who may change the file could turn off checks, or have this process's credentials
    // sent elsewhere.
    let http = table.get("backend").and_then(|backend| backend.get("http"));
    let mut set = http
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::keys);
    if let Some(other) = set.find(|key| !HTTP.contains(&key.as_str())) {
        return Err(format!(
            "backend.http.{other} cannot be set in this file, which allows only backend.http.url and backend.http.headers_file"
        ));
    }
    let pool: Pool = parse(&table).map_err(|error| format!("{}: {}", error.path, error.reason))?;
    // With another backend, a user who may change the file could start programs here.
    if !matches!(pool.backend, Backend::Http(_)) {
        return Err("backend: this file may contain only servers behind URLs (http)".to_owned());
    }
    match rules::wrong_with_pool(name, &pool) {
        None => Ok(pool),
        Some(problem) => Err(problem),
    }
}

/// Checks the headers file; `is_worker` means that this process reads it.
///
/// # Errors
///
/// If a worker cannot read the headers file, which would delay all pools, or if the headers are not in a file of their
/// own in the directory of `file`.
fn check_headers(file: &Path, pool: &Pool, is_worker: bool) -> Result<(), String> {
    let Backend::Http(http) = &pool.backend else {
        return Ok(());
    };
    let Some(headers) = &http.headers_file else {
        return Ok(());
    };
    // With another directory, a user who may change the file could have other files sent elsewhere.
    if headers.file_name().is_none() || headers.parent() != file.parent() {
        return Err(format!(
            "backend.http.headers_file: {} is not in the directory of this file",
            headers.display()
        ));
    }
    let found = match headers.canonicalize() {
        Ok(found) => found,
        Err(_) if !is_worker => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("{} does not exist", headers.display()));
        }
        Err(error) => {
            return Err(format!("{} cannot be read: {error}", headers.display()));
        }
    };
    // A symbolic link could lead elsewhere. The links that Kubernetes makes in a volume stay in that volume.
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !(directory.canonicalize()).is_ok_and(|directory| found.starts_with(directory)) {
        return Err(format!(
            "backend.http.headers_file: {} is a link that leads out of the directory of this file",
            headers.display()
        ));
    }
    if headers == file || file.canonicalize().is_ok_and(|file| file == found) {
        return Err(format!(
            "backend.http.headers_file: {} is this file itself: put the headers into one of their own",
            headers.display()
        ));
    }
    Ok(())
}

fn finding(file: &Path, pool: &str, problem: String) -> Finding {
    let setting = match pool {
        "" => "discovery.file".to_owned(),
        pool => format!("pools.{}", escaped(pool, LONGEST_NAME)),
    };
    Finding {
        setting,
        origin: Source::File(file.to_owned()),
        position: None,
        problem: escaped(&problem, LONGEST_PROBLEM),
        help: None,
    }
}

/// Shortens a text, puts it on one line and escapes invisible characters. Otherwise, a user who may change the file
/// could forge log lines.
fn escaped(text: &str, longest: usize) -> String {
    let mut shown = String::new();
    for (at, letter) in text.chars().enumerate() {
        if at == longest {
            shown.push('…');
            break;
        }
        match is_unseen(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use shoal_ports::kubernetes::MOST_POOLS;

    use super::add_to;
    use crate::config::{Backend, Finding, Pool, Role, Settings};

    /// `DIRECTORY` in the text stands for the file's directory.
    fn added(text: Option<&str>) -> (Settings, Result<Vec<Finding>, Box<Finding>>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pools.toml");
        if let Some(text) = text {
            let text = text.replace("DIRECTORY", directory.path().to_str().unwrap());
            std::fs::write(&file, text).unwrap();
            std::fs::write(directory.path().join("good.headers"), "A: b\n").unwrap();
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
        let text = r#"
            [pools.good]
            prefix = "good_"
            backend.http = { url = "http://good.team.svc/mcp", headers_file = "DIRECTORY/good.headers" }
            [pools.own]
            backend.http.url = "http://own.team.svc/mcp"
            [pools.shell]
            backend.stdio.command = "sh"
            [pools.newer]
            backend.http = { url = "http://newer.team.svc/mcp", from_the_future = true }
            [pools.misspelt]
            backend.http.url = "http://x.team.svc/mcp"
            queue_ages = "5s"
            [pools.untimely]
            backend.http.url = "http://x.team.svc/mcp"
            queue_age = "soon"
            [pools.unchecked]
            backend.http = { url = "http://x.team.svc/mcp", tls.authority = "DIRECTORY/good.headers" }
            [pools.elsewhere]
            backend.http = { url = "http://x.team.svc/mcp", headers_file = "/etc/hostname" }
            [pools.above]
            backend.http = { url = "http://x.team.svc/mcp", headers_file = "DIRECTORY/.." }
            [pools.below]
            backend.http = { url = "http://x.team.svc/mcp", headers_file = "DIRECTORY/../good.headers" }
            [pools.no_url]
            backend.http.url = "nowhere"
            [pools.no_file]
            backend.http = { url = "http://x.team.svc/mcp", headers_file = "DIRECTORY/gone.headers" }
            [pools."Not Legal"]
            backend.http.url = "http://x.team.svc/mcp"
            "#;
        let (settings, left_out) = added(Some(text));
        let names: Vec<&str> = settings.pools.keys().map(String::as_str).collect();
        assert_eq!(names, ["good", "own"]);
        assert!(matches!(settings.pools["own"].backend, Backend::Demo));
        assert_eq!(settings.pools["good"].offer.prefix, "good_");
        let left_out: Vec<String> = left_out.unwrap().iter().map(ToString::to_string).collect();
        let told = left_out.join("\n");
        for word in [
            "own",
            "shell",
            "newer",
            "from_the_future",
            "misspelt: queue_ages: unknown field `queue_ages`",
            "untimely: queue_age: invalid value: string \"soon\"",
            "unchecked: backend.http.tls",
            "elsewhere: backend.http.headers_file",
            "above: backend.http.headers_file",
            "below: backend.http.headers_file",
            "no_url",
            "gone.headers does not exist",
            "Not Legal",
        ] {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(left_out.len(), 12, "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn a_headers_file_that_is_a_link_stays_in_the_directory_and_is_not_the_file_itself() {
        use std::os::unix::fs::symlink;

        // The kubelet replaces `..data` to change all files of a Secret at once.
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("..2026")).unwrap();
        symlink("..2026", at("..data")).unwrap();
        let pool = |name: &str, file: &str| {
            let file = at(file);
            format!(
                "[pools.{name}]\nbackend.http = {{ url = 'http://x.team.svc/mcp', headers_file = '{}' }}\n",
                file.display()
            )
        };
        let files = [
            ("own", "own.headers"),
            ("out", "out.headers"),
            ("up", "up.headers"),
            ("gone", "gone.headers"),
            ("itself", "pools.toml"),
            ("alias", "alias.headers"),
        ];
        let text: String = files.map(|(name, file)| pool(name, file)).concat();
        std::fs::write(at("..2026/pools.toml"), text).unwrap();
        std::fs::write(at("..2026/own.headers"), "A: b\n").unwrap();
        for name in ["pools.toml", "own.headers"] {
            symlink(format!("..data/{name}"), at(name)).unwrap();
        }
        symlink("/etc/hostname", at("out.headers")).unwrap();
        symlink("..", at("up.headers")).unwrap();
        symlink("nowhere", at("gone.headers")).unwrap();
        symlink("..data/pools.toml", at("alias.headers")).unwrap();
        let mut settings = Settings::default();
        settings.node.roles = vec![Role::Worker];
        settings.discovery.file = Some(at("pools.toml"));
        let left_out = add_to(&mut settings).unwrap();
        let names: Vec<&str> = settings.pools.keys().map(String::as_str).collect();
        assert_eq!(names, ["own"]);
        let told: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        for (name, why) in [
            ("out", "leads out of the directory"),
            ("up", "leads out of the directory"),
            ("gone", "does not exist"),
            ("itself", "is this file itself"),
            ("alias", "is this file itself"),
        ] {
            let is_told =
                |told: &String| told.contains(&format!("pools.{name}: ")) && told.contains(why);
            assert!(told.iter().any(is_told), "{name}: {told:?}");
        }
    }

    #[test]
    fn a_pool_that_is_left_out_cannot_forge_a_line_of_the_log() {
        let forged = r"a\n2026-01-01 ERROR\u001b[31m forged";
        let text = format!(
            "[pools.\"{forged}\"]\nbackend.http.url = 'http://x.team.svc/mcp'\n\
             [pools.keys]\nbackend.http = {{ url = 'http://x.team.svc/mcp', \"{forged}\" = 1 }}\n\
             [pools.{}]\nbackend.http.url = 'http://x.team.svc/mcp'\n",
            "x".repeat(300)
        );
        let (settings, left_out) = added(Some(&text));
        assert_eq!(settings.pools.len(), 1);
        let left_out = left_out.unwrap();
        assert_eq!(left_out.len(), 3);
        for finding in left_out {
            let told = finding.to_string();
            assert!(!told.contains(|c: char| c.is_control()), "{told:?}");
            assert!(told.contains(r"a\n2026") || told.contains("xxx…"), "{told}");
        }
        let (_, whole) = added(Some(&format!("\"{forged}\" = 1\n")));
        let told = whole.unwrap_err().to_string();
        assert!(told.contains(r"a\n2026"), "{told}");
    }

    #[test]
    fn a_file_with_more_pools_than_are_taken_adds_the_first_ones() {
        let pool =
            |name: &str| format!("[pools.{name}]\nbackend.http.url = 'http://x.team.svc/mcp'\n");
        let few: String = (0..MOST_POOLS)
            .map(|at| pool(&format!("p{at:04}")))
            .collect();
        let (settings, left_out) = added(Some(&few));
        assert_eq!(settings.pools.len(), MOST_POOLS + 1);
        assert_eq!(left_out.unwrap().len(), 0);

        let (settings, left_out) = added(Some(&[pool("z1"), few, pool("z2")].concat()));
        assert_eq!(settings.pools.len(), MOST_POOLS + 1);
        assert!(settings.pools.contains_key("p1999") && !settings.pools.contains_key("z1"));
        let left_out = left_out.unwrap();
        let told = left_out[0].to_string();
        assert!(
            left_out.len() == 1 && told.contains("discovery.file: it has 2002 pools"),
            "{told}"
        );
        assert!(
            told.contains("takes 2000") && told.contains("the last 2 by name"),
            "{told}"
        );
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
