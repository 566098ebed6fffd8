//! Embeds the peers' sources from `loadtest/peers/`, installs their packages with the registry's client, and starts
//! them.

mod install;
mod list;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use install::install;
pub(crate) use list::PEERS;

use crate::mcp::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registry {
    Npm,
    PyPi,
    Go,
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    registry: Registry,
    /// Peers with the same files may share a directory.
    directory: &'static str,
    files: &'static [(&'static str, &'static str)],
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

impl Peer {
    fn home(&self, peers: &Path) -> PathBuf {
        peers.join(self.directory)
    }

    pub(crate) fn log(&self, peers: &Path) -> PathBuf {
        self.home(peers).join("server.log")
    }

    pub(crate) fn command(&self, variant: &Variant, peers: &Path, behind: Option<&str>) -> Command {
        let home = self.home(peers);
        let mut command = match self.registry {
            Registry::Npm => {
                let mut node = Command::new("node");
                node.arg(home.join("server.js"));
                // Production usually sets this variable, and some packages check it.
                node.env("NODE_ENV", "production");
                node
            }
            Registry::PyPi => {
                let mut python = Command::new(home.join("venv/bin/python"));
                python.arg("-B").arg(home.join("server.py"));
                python
            }
            Registry::Go => Command::new(home.join("server")),
        };
        command.args(variant.arguments).args(behind);
        command
    }
}

pub(crate) fn named(names: &[String]) -> anyhow::Result<Vec<&'static Peer>> {
    for name in names {
        let is_known = name == "all" || PEERS.iter().any(|peer| peer.name == name);
        anyhow::ensure!(
            is_known,
            "there is no peer {name}: name some of {}, or all",
            PEERS
                .iter()
                .map(|peer| peer.name)
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    let is_named = |peer: &&Peer| names.iter().any(|name| name == "all" || name == peer.name);
    Ok(PEERS.iter().filter(is_named).collect())
}

pub(crate) fn default_directory() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.with_file_name("peers"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{PEERS, named};

    #[test]
    fn every_row_and_every_peer_has_a_name_of_its_own() {
        let rows = PEERS
            .iter()
            .flat_map(|peer| peer.variants)
            .map(|variant| variant.row);
        let rows: Vec<&str> = rows.collect();
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
}
