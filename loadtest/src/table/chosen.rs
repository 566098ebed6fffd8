//! The peers from package registries that take part.

use std::path::PathBuf;

use crate::peers::{self, Peer};

/// Peers that are installed, and where.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The directory of all peers.
    pub(super) directory: PathBuf,
    /// Those that could be installed.
    pub(super) installed: Vec<&'static Peer>,
    /// Why a row is missing, one line each.
    pub(super) left_out: Vec<String>,
}

impl Chosen {
    /// Their names, separated by commas.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.installed.iter().map(|peer| peer.name).collect();
        names.join(",")
    }
}

/// Installs the peers of these names below `directory`, or next to this program. Blocks, for minutes where nothing is
/// installed yet.
///
/// # Errors
///
/// Where there is no peer of a name. One that cannot be installed is left out.
pub(crate) fn installed(
    names: &[String],
    directory: Option<PathBuf>,
    progress: impl Fn(&str),
) -> anyhow::Result<Chosen> {
    let directory = match directory {
        // They are started from elsewhere.
        Some(directory) => std::path::absolute(directory)?,
        None => peers::default_directory()?,
    };
    let mut chosen = Chosen {
        directory,
        installed: Vec::new(),
        left_out: Vec::new(),
    };
    for peer in peers::named(names)? {
        match peers::install(peer, &chosen.directory, &progress) {
            Ok(()) => chosen.installed.push(peer),
            Err(why) => {
                let rows = peer.variants.iter().map(|variant| variant.row);
                let lines = rows.map(|row| format!("{row}: {why}"));
                chosen.left_out.extend(lines);
            }
        }
    }
    Ok(chosen)
}
