//! The quotas of a case that has some.

use std::io::Write;

use tempfile::NamedTempFile;

/// A tool of the demo pool of which there may be one call in an hour.
pub(super) const RARE: &str = "echo_once";

/// Quotas of each kind that a call passes, none of which refuses what is measured.
const QUOTAS: &str = r#"
[[quotas]]
name = "addresses"
per = "address"
rate = "100000/s"

[[quotas]]
name = "principals"
per = "principal"
rate = "100000/s"
concurrent = 10000

[[quotas]]
name = "echo"
per = "principal"
tools = ["echo"]
rate = "100000/s"

[[quotas]]
name = "everybody"
per = "all"
rate = "100000/s"
"#;

/// The configuration file of a server with quotas, which no variable can hold; dropping it deletes it.
pub(super) struct Quotas(NamedTempFile);

impl Quotas {
    /// Writes the file.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub(super) fn write() -> anyhow::Result<Self> {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile()?;
        write!(
            file,
            "{QUOTAS}\n[[quotas]]\nname = \"rare\"\nper = \"all\"\ntools = [\"{RARE}\"]\nrate = \"1/h\"\nburst = 1\n"
        )?;
        Ok(Self(file))
    }

    /// Where it is.
    pub(super) fn path(&self) -> String {
        self.0.path().display().to_string()
    }
}
