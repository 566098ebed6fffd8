use std::path::{Path, PathBuf};

use shoal_ports::FileWatch;

use crate::config::{self, Environment, Flag, Loaded, Preset, discovered};
use crate::exit::Failure;

/// May add missing settings.
type Accept = Box<dyn Fn(&mut Loaded) -> Result<(), Failure> + Send + Sync>;

type Load = fn(&[Preset], Option<&Path>, &Environment, &[Flag]) -> Result<Loaded, config::Error>;

/// Reads a process's configuration: fixed sources (program, environment, command line) and the file.
pub struct ConfigReader {
    program: Vec<Preset>,
    file: Option<PathBuf>,
    environment: Environment,
    flags: Vec<Flag>,
    accept: Accept,
    /// The watch began before the file was read, so it misses no change.
    watch: Option<FileWatch>,
    /// The path is fixed at the start.
    discovered: Option<FileWatch>,
}

impl ConfigReader {
    /// Creates a reader of these sources, as for [`config::load`]. `accept` may refuse settings.
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

    /// Later calls return `None`.
    pub(super) fn take_watch(&mut self) -> Option<FileWatch> {
        self.watch.take()
    }

    pub(super) fn take_discovered(&mut self) -> Option<FileWatch> {
        self.discovered.take()
    }

    /// Returns the configuration file, if any.
    pub fn file(&self) -> Option<&Path> {
        let named = self.file.as_deref();
        named.or(self.environment.config_file.as_deref())
    }

    /// Reads the configuration at the start. Errors in `discovery.file` do not affect the process's own pools.
    ///
    /// # Errors
    ///
    /// Why the configuration is unusable.
    pub fn load(&mut self) -> Result<Loaded, Failure> {
        let mut loaded = self.load_by(config::load)?;
        let file = loaded.settings.discovery.file.as_deref();
        // The watch begins before the file is read, so that it misses no change.
        self.discovered = file.map(FileWatch::new);
        if let Err(whole) = discovered::add(&mut loaded) {
            loaded.left_out = vec![*whole];
        }
        self.accepted(loaded)
    }

    /// # Errors
    ///
    /// Why the configuration is unusable.
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
