mod changes;
mod layering;
mod messages;
mod mistakes;
mod redaction;
mod reference;
mod shares;
mod telemetry;
mod warnings;

use std::path::PathBuf;

use super::{Environment, Flag, Loaded, Preset, Settings, load, value};

#[derive(Default)]
struct Operator {
    program: Vec<Preset>,
    file: Option<PathBuf>,
    variables: Vec<(String, String)>,
    flags: Vec<Flag>,
    _directory: Option<Directory>,
}

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn operator() -> Operator {
    Operator::default()
}

impl Operator {
    fn program(mut self, path: &str, text: &str) -> Self {
        let path = path.split('.').map(str::to_owned);
        self.program.push((path.collect(), value(text)));
        self
    }

    fn file(mut self, text: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("shoal-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("shoal.toml");
        std::fs::write(&path, text).unwrap();
        self.file = Some(path);
        self._directory = Some(Directory(directory));
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn flags(mut self, flags: Vec<Flag>) -> Self {
        self.flags.extend(flags);
        self
    }

    fn load(&self) -> Result<Loaded, super::Error> {
        let environment = Environment::of(self.variables.clone());
        load(
            &self.program,
            self.file.as_deref(),
            &environment,
            &self.flags,
        )
    }

    fn settings(&self) -> Settings {
        self.load().unwrap().settings
    }

    fn refusal(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}
