use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use shoal_testkit::cluster::Cluster;
use shoal_testkit::directory::Directory;
use shoal_testkit::free_port;
use shoal_testkit::process::{Launch, Process, SOON};
use tokio::time::{Instant, sleep};

use crate::files::{deploy, yaml};

const MISSING: &str = "needs prometheus with promtool: apt-get install prometheus";

const EVERY: &str = "1s";

pub(crate) struct Prometheus {
    base: String,
    http: reqwest::Client,
    process: Process,
}

impl Prometheus {
    pub(crate) async fn start(cluster: &Cluster, directory: &Directory) -> anyhow::Result<Self> {
        let config = directory.file("prometheus.yml");
        std::fs::write(&config, configuration(cluster)?.to_string())?;
        promtool(&["check", "config", path(&config)], "")?;
        let port = free_port::reserve()?;
        let launch = Launch::new("prometheus", "prometheus", directory.file("prometheus.log"))
            .arguments(["--config.file", path(&config)])
            .arguments(["--storage.tsdb.path", path(&directory.file("tsdb"))])
            .arguments(["--web.listen-address", &format!("127.0.0.1:{port}")]);
        let prometheus = Self {
            base: format!("http://127.0.0.1:{port}"),
            http: reqwest::Client::builder().no_proxy().build()?,
            process: Process::start(&launch).context(MISSING)?,
        };
        prometheus.wait_until_ready().await?;
        Ok(prometheus)
    }

    async fn wait_until_ready(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            let asked = self.http.get(format!("{}/-/ready", self.base)).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("prometheus is not ready: {}", self.process.tail());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Value> {
        let mut url = reqwest::Url::parse(&format!("{}/api/v1/{path}", self.base))?;
        url.query_pairs_mut().extend_pairs(query);
        let mut answer: Value = self.http.get(url).send().await?.json().await?;
        if answer["status"] != "success" {
            bail!("{query:?}: {answer}");
        }
        Ok(answer["data"].take())
    }

    pub(crate) async fn instance(&self, expr: &str) -> anyhow::Result<String> {
        let data = self.get("query", &[("query", expr)]).await?;
        let instance = data["result"][0]["metric"]["instance"].as_str();
        Ok(instance.context("no sample")?.to_owned())
    }

    /// Leaves out infinite values and NaN, as of a quantile without samples.
    pub(crate) async fn numbers(&self, expr: &str) -> anyhow::Result<Vec<f64>> {
        let data = self.get("query", &[("query", expr)]).await?;
        let samples = data["result"].as_array().into_iter().flatten();
        let values = samples.filter_map(|it| it["value"][1].as_str()?.parse().ok());
        Ok(values.filter(|it: &f64| it.is_finite()).collect())
    }
}

fn configuration(cluster: &Cluster) -> anyhow::Result<Value> {
    let mut config: Value = yaml("prometheus.yml");
    config["global"]["scrape_interval"] = EVERY.into();
    config["global"]["evaluation_interval"] = EVERY.into();
    for file in config["rule_files"].as_array_mut().context("rule_files")? {
        *file = path(&deploy(file.as_str().context("a name")?)).into();
    }
    let admins = cluster.members().iter().map(|it| it.admin().address());
    let admins: Value = admins.collect();
    let jobs = config["scrape_configs"].as_array_mut().context("jobs")?;
    jobs.retain(|job| job["job_name"] == "shoal");
    let [job] = &mut jobs[..] else {
        bail!("no job shoal");
    };
    job["static_configs"][0]["targets"] = admins;
    Ok(config)
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn promtool(arguments: &[&str], input: &str) -> anyhow::Result<()> {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start promtool")
        .context(MISSING)?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("promtool {arguments:?}: {said}{complaint}");
    }
    Ok(())
}
