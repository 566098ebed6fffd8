use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use crate::client::{Session, call, request, text};
use crate::process::{SOON, Server};
use crate::serve::FIXTURE;

pub(crate) struct ConfigFile {
    directory: PathBuf,
    file: String,
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl ConfigFile {
    pub(crate) fn new(text: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("shoal-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("shoal.toml").to_str().unwrap().to_owned();
        let config = Self { directory, file };
        config.write(text);
        config
    }

    pub(crate) fn path(&self) -> &str {
        &self.file
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn write(&self, text: &str) {
        let next = self.beside("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, &self.file).unwrap();
    }
}

/// `more` are settings of the server.
pub(crate) fn fixture(name: &str, more: &str) -> String {
    let more = match more {
        "" => String::new(),
        more => format!(", {more}"),
    };
    let shared = match more.contains("isolation") {
        true => "",
        false => ", isolation = 'shared'",
    };
    format!(
        "[pools.{name}]\nprefix = '{name}_'\nbackend = {{ stdio = {{ command = 'python3', args = ['-u', '{FIXTURE}']{more}{shared} }} }}\n"
    )
}

pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, so).await.expect("it comes to be so");
}

pub(crate) struct Seen {
    pub(crate) session: Session,
    last: AtomicU64,
}

impl Seen {
    pub(crate) async fn of(server: &Server) -> Self {
        Self {
            session: Session::open(&server.mcp).await,
            last: AtomicU64::new(1_000_000_000),
        }
    }

    fn id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn call(&self, tool: &str, said: &str) -> String {
        let call = call(self.id(), tool, json!({ "text": said }));
        text(&self.session.ask(&call).await).to_owned()
    }

    pub(crate) async fn refusal(&self, tool: &str) -> i64 {
        let call = call(self.id(), tool, json!({ "text": "" }));
        let answer = self.session.ask(&call).await;
        answer["error"]["code"].as_i64().expect("an error")
    }

    pub(crate) async fn offers(&self, tool: &str, is_offered: bool) {
        until(async || {
            let list = request(self.id(), "tools/list", json!({}));
            let list = self.session.ask(&list).await;
            let tools = list["result"]["tools"].as_array().unwrap();
            tools.iter().any(|listed| listed["name"] == tool) == is_offered
        })
        .await;
    }
}
