use std::io::Write;

use tempfile::NamedTempFile;

pub(super) const RARE: &str = "echo_once";

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

pub(super) struct Quotas(NamedTempFile);

impl Quotas {
    pub(super) fn write() -> anyhow::Result<Self> {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile()?;
        write!(
            file,
            "{QUOTAS}\n[[quotas]]\nname = \"rare\"\nper = \"all\"\ntools = [\"{RARE}\"]\nrate = \"1/h\"\nburst = 1\n"
        )?;
        Ok(Self(file))
    }

    pub(super) fn path(&self) -> String {
        self.0.path().display().to_string()
    }
}
