use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct Alerts {
    pub(crate) groups: Vec<Group>,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    pub(crate) rules: Vec<Rule>,
}

/// An alert, or a recording rule.
#[derive(Deserialize)]
pub(crate) struct Rule {
    pub(crate) alert: Option<String>,
    pub(crate) record: Option<String>,
    pub(crate) expr: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Rule {
    pub(crate) fn name(&self) -> &str {
        self.alert.as_deref().or(self.record.as_deref()).unwrap()
    }
}

pub(crate) struct Query {
    pub(crate) at: String,
    pub(crate) expr: String,
}

pub(crate) fn deploy(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    root.canonicalize().unwrap().join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn yaml<T: for<'a> Deserialize<'a>>(name: &str) -> T {
    serde_saphyr::from_str(&text(&deploy(name))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn rules() -> Vec<Rule> {
    let alerts: Alerts = yaml("alerts.yaml");
    alerts.groups.into_iter().flat_map(|it| it.rules).collect()
}

pub(crate) fn dashboards() -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(deploy("grafana/dashboards")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let dashboard = serde_json::from_str(&text(&path));
            let dashboard = dashboard.unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, dashboard)
        })
        .collect()
}

pub(crate) fn queries() -> Vec<Query> {
    let mut all = Vec::new();
    for (name, dashboard) in dashboards() {
        collect(&name, &dashboard["panels"], &mut all);
    }
    all
}

fn collect(file: &str, panels: &Value, to: &mut Vec<Query>) {
    for panel in panels.as_array().into_iter().flatten() {
        let at = format!("{file}: {}", panel["title"].as_str().unwrap());
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expr = target["expr"].as_str().unwrap().to_owned();
            let at = at.clone();
            to.push(Query { at, expr });
        }
        collect(file, &panel["panels"], to);
    }
}
