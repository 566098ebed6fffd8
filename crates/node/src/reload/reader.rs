//! Where a process's configuration comes from, so that it can be read again.

use std::path::{Path, PathBuf};

use shoal_ports::FileWatch;

use crate::config::{self, Environment, Flag, Loaded, Preset, discovered};
use crate::exit::Failure;

/// Whether a process can do what its settings say; it may add what is missing.
type Accept = Box<dyn Fn(&mut Loaded) -> Result<(), Failure> + Send + Sync>;

type Load = fn(&[Preset], Option<&Path>, &Environment, &[Flag]) -> Result<Loaded, config::Error>;

/// Reads a process's configuration: what its program, environment and command line say, which stays, and its file.
pub struct ConfigReader {
    program: Vec<Preset>,
    file: Option<PathBuf>,
    environment: Environment,
    flags: Vec<Flag>,
    accept: Accept,
    /// From before the file was read.
    watch: Option<FileWatch>,
    /// Of the file with pools that others find. It is settled at the start where that is.
    discovered: Option<FileWatch>,
}

impl ConfigReader {
    /// Reads what these say, as [`config::load`] does. What `accept` refuses cannot be used either.
    pub fn new(
        program: &[Preset],
        file: Option<&Path>,
        environment: &Environment,
        flags: Vec<Flag>,
        accept: impl Fn(&mut Loaded) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        let mut reader = Self {
            program: program.to_vec(),
            file: file.map(Path::to_owned),
            environment: environment.clone(),
            flags,
            accept: Box::new(accept),
            watch: None,
            discovered: None,
        };
        reader.watch = reader.file().map(FileWatch::new);
        reader
    }

    /// Sees what has changed in the file since the reader was made, if there is one. There is one watch.
    pub(super) fn take_watch(&mut self) -> Option<FileWatch> {
        self.watch.take()
    }

    /// The same of the file with pools that others find.
    pub(super) fn take_discovered(&mut self) -> Option<FileWatch> {
        self.discovered.take()
    }

    /// The file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        let named = self.file.as_deref();
        named.or(self.environment.config_file.as_deref())
    }

    /// Reads the configuration for the start. An error in `discovery.file` does not keep a process from its own pools.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn load(&mut self) -> Result<Loaded, Failure> {
        let mut loaded = self.load_by(config::load)?;
        let file = loaded.settings.discovery.file.as_deref();
        // From before it is read.
        self.discovered = file.map(FileWatch::new);
        if let Err(whole) = discovered::add(&mut loaded) {
            loaded.left_out = vec![*whole];
        }
        self.accepted(loaded)
    }

    /// Reads the configuration as it is now, while the process works.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn load_again(&self) -> Result<Loaded, Failure> {
        let mut loaded = self.load_by(config::load_again)?;
        discovered::add(&mut loaded).map_err(|whole| config::Error::of(*whole))?;
        self.accepted(loaded)
    }

    fn load_by(&self, load: Load) -> Result<Loaded, Failure> {
        let file = self.file.as_deref();
        Ok(load(&self.program, file, &self.environment, &self.flags)?)
    }

    fn accepted(&self, mut loaded: Loaded) -> Result<Loaded, Failure> {
        (self.accept)(&mut loaded)?;
        Ok(loaded)
    }
}
