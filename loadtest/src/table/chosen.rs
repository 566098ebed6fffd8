use std::path::PathBuf;

use crate::peers::{self, Peer};

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(super) directory: PathBuf,
    pub(super) installed: Vec<&'static Peer>,
    pub(super) left_out: Vec<String>,
}

impl Chosen {
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.installed.iter().map(|peer| peer.name).collect();
        names.join(",")
    }
}

/// Leaves out peers that fail. Blocks, for minutes at the first time.
pub(crate) fn installed(
    names: &[String],
    directory: Option<PathBuf>,
    progress: impl Fn(&str),
) -> anyhow::Result<Chosen> {
    let directory = match directory {
        // Absolute, because peers start in other directories.
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
