//! Embeds the peers' sources from `loadtest/peers/`, installs their packages with the registry's client, and starts
//! them.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use shoal_testkit::process::Launch;

use crate::mcp::Mode::{self, Legacy, Modern};

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    tools: &'static Tools,
    source: Source,
    pub(crate) variants: &'static [Variant],
}

#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) row: &'static str,
    pub(crate) mode: Mode,
    arguments: &'static [&'static str],
    /// A gateway gets the URL of the server behind it as its last argument.
    pub(crate) is_gateway: bool,
}

/// A directory's name, and its files' names and texts.
type Source = (&'static str, &'static [(&'static str, &'static str)]);

/// How to install and run a peer. A program whose path has a slash is in the peer's directory.
#[derive(Debug)]
struct Tools {
    install: &'static [&'static [&'static str]],
    run: &'static [&'static str],
    how_to_get: &'static str,
}

const NPM: Tools = Tools {
    // The packages here need no install scripts.
    install: &[&["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]],
    run: &["node", "server.js"],
    how_to_get: "install Node.js 20.3 or later with npm (apt-get install nodejs npm)",
};
const PYPI: Tools = Tools {
    install: &[
        &["python3", "-m", "venv", "venv"],
        &[
            "venv/bin/pip",
            "install",
            "--disable-pip-version-check",
            "--requirement",
            "requirements.txt",
        ],
    ],
    run: &["venv/bin/python", "-B", "server.py"],
    how_to_get: "install Python 3.10 or later with venv (apt-get install python3 python3-venv)",
};
const GO: Tools = Tools {
    install: &[&["go", "build", "-o", "server", "."]],
    run: &["./server"],
    how_to_get: "install Go 1.25.5 or later (https://go.dev/dl)",
};

macro_rules! source {
    ($directory:literal: $($name:literal),*) => {
        ($directory, &[$(($name, include_str!(concat!("../peers/", $directory, "/", $name)))),*])
    };
}

const TYPESCRIPT_1: Source =
    source!("typescript-1": "package.json", "package-lock.json", "server.js");
const TYPESCRIPT_2: Source =
    source!("typescript-2": "package.json", "package-lock.json", "server.js");
const GO_SDK: Source = source!("go-sdk": "go.mod", "go.sum", "main.go");
const MCP_GO: Source = source!("mcp-go": "go.mod", "go.sum", "main.go");
const PYTHON_SDK: Source = source!("python-sdk": "requirements.txt", "server.py");
const FASTMCP: Source = source!("fastmcp": "requirements.txt", "server.py");

#[rustfmt::skip] // One line per row.
pub(crate) const PEERS: &[Peer] = &[
    peer("typescript-1", &NPM, TYPESCRIPT_1, &[
        row("TypeScript 1 stateful", Legacy, &[]),
    ]),
    peer("typescript-2", &NPM, TYPESCRIPT_2, &[
        row("TypeScript 2 modern", Modern, &[]),
    ]),
    peer("go-sdk", &GO, GO_SDK, &[
        row("Go SDK stateful", Legacy, &[]),
        row("Go SDK modern", Modern, &["-stateless"]),
    ]),
    peer("mcp-go", &GO, MCP_GO, &[
        row("mcp-go stateful", Legacy, &[]),
        row("mcp-go modern", Modern, &[]),
    ]),
    peer("python-sdk", &PYPI, PYTHON_SDK, &[
        row("Python SDK stateful", Legacy, &[]),
        row("Python SDK modern", Modern, &[]),
    ]),
    peer("fastmcp", &PYPI, FASTMCP, &[
        row("FastMCP stateful", Legacy, &[]),
        row("FastMCP stateless JSON", Legacy, &["--stateless"]),
        row("FastMCP modern", Modern, &[]),
    ]),
    peer("fastmcp-proxy", &PYPI, FASTMCP, &[
        gateway("FastMCP proxy, legacy", Legacy),
        gateway("FastMCP proxy, modern", Modern),
    ]),
];

const fn peer(
    name: &'static str,
    tools: &'static Tools,
    source: Source,
    variants: &'static [Variant],
) -> Peer {
    Peer {
        name,
        tools,
        source,
        variants,
    }
}

const fn row(row: &'static str, mode: Mode, arguments: &'static [&'static str]) -> Variant {
    Variant {
        row,
        mode,
        arguments,
        is_gateway: false,
    }
}

const fn gateway(name: &'static str, mode: Mode) -> Variant {
    Variant {
        is_gateway: true,
        ..row(name, mode, &["--proxy"])
    }
}

impl Peer {
    fn home(&self, peers: &Path) -> PathBuf {
        peers.join(self.source.0)
    }

    pub(crate) fn log(&self, peers: &Path) -> PathBuf {
        self.home(peers).join("server.log")
    }

    pub(crate) fn launch(&self, variant: &Variant, peers: &Path, behind: Option<&str>) -> Launch {
        let (home, words) = (self.home(peers), self.tools.run);
        Launch::new(self.name, words[0], self.log(peers))
            .arguments(&words[1..])
            .arguments(variant.arguments)
            .arguments(behind)
            // Production usually sets this variable, and some packages check it.
            .variable("NODE_ENV", "production")
            .under(&["env".into(), "-C".into(), home.into()])
    }

    /// Installs the peer, unless the same files are installed. Blocks.
    pub(crate) fn install(&self, peers: &Path, progress: impl Fn(&str)) -> Result<(), String> {
        let home = self.home(peers);
        // A changed source needs a new build.
        let wanted: String = self.source.1.iter().map(|(_, text)| *text).collect();
        let stamp = home.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        progress(&format!("installing {} in {}", self.name, home.display()));
        let unwritten =
            |cause: io::Error| format!("could not write to {}: {cause}", home.display());
        self.write(&home).map_err(unwritten)?;
        for step in self.tools.install {
            self.tools.carry_out(step, &home)?;
        }
        fs::write(stamp, wanted).map_err(unwritten)
    }

    /// Leftovers may not match the files.
    fn write(&self, home: &Path) -> io::Result<()> {
        match fs::remove_dir_all(home) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        fs::create_dir_all(home)?;
        for (name, text) in self.source.1 {
            fs::write(home.join(name), text)?;
        }
        Ok(())
    }
}

impl Tools {
    fn carry_out(&self, step: &[&str], home: &Path) -> Result<(), String> {
        let (what, log) = (step[0], home.join("install.log"));
        let run = || -> io::Result<_> {
            let file = File::create(&log)?;
            let mut step = command(step, home);
            step.stdout(file.try_clone()?).stderr(file);
            step.stdin(Stdio::null()).status()
        };
        match run() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!(
                "{what} failed ({status}): read {}, and {} if it is too old",
                log.display(),
                self.how_to_get
            )),
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                Err(format!("{what} is not installed: {}", self.how_to_get))
            }
            Err(cause) => Err(format!("could not run {what}: {cause}")),
        }
    }
}

fn command(words: &[&str], home: &Path) -> Command {
    let program = match words[0].contains('/') {
        true => home.join(words[0]),
        false => words[0].into(),
    };
    let mut command = Command::new(program);
    command.args(&words[1..]).current_dir(home);
    command
}

pub(crate) fn named(names: &[String]) -> anyhow::Result<Vec<&'static Peer>> {
    for name in names {
        let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        anyhow::ensure!(
            name == "all" || known.contains(&name.as_str()),
            "there is no peer {name}: name some of {}, or all",
            known.join(", ")
        );
    }
    let is_named = |peer: &&Peer| names.iter().any(|name| name == "all" || name == peer.name);
    Ok(PEERS.iter().filter(is_named).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{GO, NPM, PEERS, named};

    #[test]
    fn every_row_and_every_peer_has_a_name_of_its_own() {
        let variants = PEERS.iter().flat_map(|peer| peer.variants);
        let rows: Vec<&str> = variants.map(|variant| variant.row).collect();
        assert_eq!(rows.iter().collect::<HashSet<_>>().len(), rows.len());
        let names: HashSet<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
    }

    #[test]
    fn peers_are_chosen_by_name() {
        let chosen = named(&["mcp-go".to_owned(), "typescript-1".to_owned()]).unwrap();
        let names: Vec<&str> = chosen.iter().map(|peer| peer.name).collect();
        assert_eq!(names, ["typescript-1", "mcp-go"]);
        assert_eq!(named(&["all".to_owned()]).unwrap().len(), PEERS.len());
        assert!(named(&[]).unwrap().is_empty());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = named(&["typescript".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("no peer typescript") && error.contains("mcp-go"),
            "{error}"
        );
    }

    #[test]
    fn a_failed_installation_is_explained() {
        let home = tempfile::tempdir().unwrap();
        let missing = GO.carry_out(&["no-such-program-anywhere"], home.path());
        assert_eq!(
            missing.unwrap_err(),
            "no-such-program-anywhere is not installed: install Go 1.25.5 or later (https://go.dev/dl)"
        );
        let failing = &["sh", "-c", "echo no such package; exit 3"];
        let why = NPM.carry_out(failing, home.path()).unwrap_err();
        let log = home.path().join("install.log");
        assert!(why.contains(&log.display().to_string()), "{why}");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "no such package\n");
    }
}
