//! A Kubernetes API server for tests: lists, watches, resource versions and conflicts.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use kube::Config;
use serde_json::{Value, json};
use shoal_controller::POOLS_KEY;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

/// The API server of a test. It has the controller's empty ConfigMap and Secret, and no Lease.
#[derive(Clone)]
pub(crate) struct Api {
    state: Arc<Mutex<Stored>>,
    changes: broadcast::Sender<(String, Value)>,
    /// The path whose requests the server holds, and the number of requests that it has held.
    held: watch::Sender<(String, usize)>,
    url: String,
}

#[derive(Default)]
struct Stored {
    objects: BTreeMap<(String, String), Value>,
    known: BTreeSet<String>,
    version: u64,
    failing: bool,
    longest_page: usize,
    written: Vec<String>,
    told: Vec<Value>,
    /// Remaining failures and their status, by method and path.
    failing_at: BTreeMap<(String, String), (usize, u16)>,
}

impl Api {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (changes, _) = broadcast::channel(1024);
        let api = Self {
            state: Arc::default(),
            changes,
            held: watch::Sender::default(),
            url: format!("http://{}", listener.local_addr().unwrap()),
        };
        api.install("api/v1/namespaces/team-a/services");
        api.install("api/v1/namespaces/team-a/secrets");
        let own = |name: &str| json!({ "metadata": { "name": name } });
        api.put(
            "api/v1/namespaces/shoal/configmaps",
            own("shoal-discovered"),
        );
        api.put("api/v1/namespaces/shoal/secrets", own("shoal-discovered"));
        let router = Router::new().fallback(answer).with_state(api.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        api
    }

    pub(crate) fn cluster(&self) -> Config {
        let mut config = Config::new(self.url.parse().unwrap());
        config.default_namespace = "shoal".to_owned();
        config
    }

    pub(crate) fn install(&self, collection: &str) {
        self.state
            .lock()
            .unwrap()
            .known
            .insert(collection.to_owned());
    }

    /// Makes lists fail, or succeed again. Ends all watches.
    pub(crate) fn fail_lists(&self, failing: bool) {
        self.state.lock().unwrap().failing = failing;
        if failing {
            let _ = self.changes.send((String::new(), Value::Null));
        }
    }

    /// Answers the next `times` requests of this method and path with the status `code`.
    pub(crate) fn fail(&self, method: &str, path: &str, times: usize, code: u16) {
        let key = (method.to_owned(), path.to_owned());
        (self.state.lock().unwrap().failing_at).insert(key, (times, code));
    }

    pub(crate) fn longest_page(&self) -> usize {
        self.state.lock().unwrap().longest_page
    }

    /// Holds requests for this path until the next call of `hold`.
    pub(crate) fn hold(&self, path: &str) {
        self.held.send_replace((path.to_owned(), 0));
    }

    pub(crate) fn holds(&self) -> usize {
        self.held.borrow().1
    }

    fn failure(&self, method: &str, path: &str) -> Option<u16> {
        let mut state = self.state.lock().unwrap();
        let key = (method.to_owned(), path.to_owned());
        let (left, code) = state.failing_at.get_mut(&key)?;
        *left = left.checked_sub(1)?;
        Some(*code)
    }

    pub(crate) fn fails(&self, method: &str, path: &str) -> bool {
        let key = (method.to_owned(), path.to_owned());
        let state = self.state.lock().unwrap();
        (state.failing_at.get(&key)).is_some_and(|(left, _)| *left > 0)
    }

    pub(crate) fn has_failed(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.failing_at.values().all(|(left, _)| *left == 0)
    }

    pub(crate) fn written(&self) -> Vec<String> {
        self.state.lock().unwrap().written.clone()
    }

    pub(crate) fn put(&self, collection: &str, mut object: Value) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        state.known.insert(collection.to_owned());
        let (name, version) = (
            object["metadata"]["name"].as_str().unwrap().to_owned(),
            state.version,
        );
        let namespace = collection.split('/').nth_back(1).unwrap();
        let metadata = &mut object["metadata"];
        metadata["namespace"] = json!(namespace);
        metadata["uid"] = json!(format!("{collection}/{name}"));
        metadata["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["resourceVersion"] = json!(version.to_string());
        if collection.ends_with("/configmaps")
            && let Some(pools) = object["data"][POOLS_KEY].as_str()
        {
            state.written.push(pools.to_owned());
        }
        let key = (collection.to_owned(), name);
        let kind = match state.objects.insert(key, object.clone()) {
            Some(_) => "MODIFIED",
            None => "ADDED",
        };
        let _ = self.changes.send((
            collection.to_owned(),
            json!({ "type": kind, "object": object }),
        ));
    }

    pub(crate) fn delete(&self, collection: &str, name: &str) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version;
        let mut object = state
            .objects
            .remove(&(collection.to_owned(), name.to_owned()))
            .unwrap();
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let _ = self.changes.send((
            collection.to_owned(),
            json!({ "type": "DELETED", "object": object }),
        ));
    }

    fn own(&self, collection: &str) -> Value {
        let key = (
            format!("api/v1/namespaces/shoal/{collection}"),
            "shoal-discovered".to_owned(),
        );
        self.state.lock().unwrap().objects[&key]["data"].clone()
    }

    pub(crate) fn nodes_see(&self, text: &str) -> bool {
        let data = self.own("configmaps");
        data[POOLS_KEY]
            .as_str()
            .is_some_and(|pools| pools.contains(text))
    }

    pub(crate) fn workers_see(&self, text: &str) -> bool {
        self.secret(POOLS_KEY).contains(text)
    }

    pub(crate) fn token(&self, pool: &str) -> String {
        self.secret(&format!("{pool}.headers"))
    }

    fn secret(&self, key: &str) -> String {
        let data = self.own("secrets");
        let value: k8s_openapi::ByteString =
            serde_json::from_value(data[key].clone()).unwrap_or_default();
        String::from_utf8(value.0).unwrap()
    }

    pub(crate) fn told(&self) -> Vec<[String; 3]> {
        let state = self.state.lock().unwrap();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let told = state.told.iter().map(|event| {
            [
                &event["regarding"]["name"],
                &event["reason"],
                &event["note"],
            ]
            .map(word)
        });
        told.collect()
    }

    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self.get(
            "apis/coordination.k8s.io/v1/namespaces/shoal/leases",
            "shoal-controller",
        )?;
        let holder = lease["spec"]["holderIdentity"].as_str();
        holder.map(str::to_owned)
    }

    pub(crate) fn lease_renewed(&self) -> Option<Value> {
        let lease = self.get(
            "apis/coordination.k8s.io/v1/namespaces/shoal/leases",
            "shoal-controller",
        )?;
        Some(lease["spec"]["renewTime"].clone())
    }

    pub(crate) fn owner_of_the_lease(&self) -> Option<String> {
        let lease = self.get(
            "apis/coordination.k8s.io/v1/namespaces/shoal/leases",
            "shoal-controller",
        )?;
        let owner = lease["metadata"]["ownerReferences"][0]["uid"].as_str();
        owner.map(str::to_owned)
    }

    fn get(&self, collection: &str, name: &str) -> Option<Value> {
        let key = (collection.to_owned(), name.to_owned());
        self.state.lock().unwrap().objects.get(&key).cloned()
    }

    fn list(&self, collection: &str, query: &BTreeMap<String, String>) -> Response {
        let mut state = self.state.lock().unwrap();
        let of = |((at, _), object): (&(String, String), &Value)| {
            (at == collection).then(|| object.clone())
        };
        let number = |name: &str| query.get(name).and_then(|text| text.parse::<usize>().ok());
        let (begin, limit) = (number("continue").unwrap_or(0), number("limit"));
        let mut items: Vec<Value> = state.objects.iter().filter_map(of).skip(begin).collect();
        let mut metadata = json!({ "resourceVersion": state.version.to_string() });
        if let Some(limit) = limit.filter(|limit| *limit < items.len()) {
            items.truncate(limit);
            metadata["continue"] = json!((begin + limit).to_string());
        }
        state.longest_page = state.longest_page.max(items.len());
        let list =
            json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items });
        axum::Json(list).into_response()
    }

    fn watch(&self, collection: &str, since: u64) -> Response {
        let (missed, changes) = {
            let state = self.state.lock().unwrap();
            let newer = |((at, _), object): (&(String, String), &Value)| {
                let version = object["metadata"]["resourceVersion"].as_str()?;
                let newer = at == collection && version.parse::<u64>().ok()? > since;
                newer.then(|| json!({ "type": "ADDED", "object": object }))
            };
            let missed: Vec<Value> = state.objects.iter().filter_map(newer).collect();
            (missed, self.changes.subscribe())
        };
        let collection = collection.to_owned();
        let coming = futures::stream::unfold(changes, move |mut changes| {
            let collection = collection.clone();
            async move {
                loop {
                    match changes.recv().await {
                        Ok((at, change)) if at == collection => return Some((change, changes)),
                        Ok((at, _)) if !at.is_empty() => {}
                        _ => return None,
                    }
                }
            }
        });
        let lines = futures::stream::iter(missed).chain(coming);
        let lines = lines.map(|change| Ok::<_, Infallible>(Bytes::from(format!("{change}\n"))));
        Body::from_stream(lines).into_response()
    }
}

fn status(code: u16, reason: &str) -> Response {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason, "reason": reason, "code": code });
    (
        axum::http::StatusCode::from_u16(code).unwrap(),
        axum::Json(body),
    )
        .into_response()
}

async fn answer(State(api): State<Api>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/').to_owned();
    let query: BTreeMap<String, String> = url_query(head.uri.query().unwrap_or_default());
    let body = axum::body::to_bytes(body, 4 << 20).await.unwrap();
    let (parent, name) = path.rsplit_once('/').unwrap();
    let is_held = |held: &(String, usize)| held.0 == path;
    if is_held(&api.held.borrow()) {
        api.held.send_modify(|held| held.1 += 1);
        let mut held = api.held.subscribe();
        held.wait_for(|held| !is_held(held)).await.unwrap();
    }
    if let Some(code) = api.failure(head.method.as_str(), &path) {
        return status(code, "Failed");
    }
    match head.method.as_str() {
        "GET" if api.state.lock().unwrap().known.contains(&path) => {
            match query.contains_key("watch") {
                _ if api.state.lock().unwrap().failing => status(500, "InternalError"),
                true => api.watch(&path, query["resourceVersion"].parse().unwrap()),
                false => api.list(&path, &query),
            }
        }
        "GET" => match api.get(parent, name) {
            Some(object) => axum::Json(object).into_response(),
            None => status(404, "NotFound"),
        },
        "PUT" => {
            let object: Value = serde_json::from_slice(&body).unwrap();
            let found = api.get(parent, name).unwrap_or_default();
            if found["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
                return status(409, "Conflict");
            }
            api.put(parent, object.clone());
            axum::Json(object).into_response()
        }
        "POST" | "PATCH" => {
            let object: Value = serde_json::from_slice(&body).unwrap();
            if path.contains("/events") {
                api.state.lock().unwrap().told.push(object.clone());
                return axum::Json(object).into_response();
            }
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if api.get(&path, name).is_some() {
                return status(409, "AlreadyExists");
            }
            api.put(&path, object.clone());
            axum::Json(object).into_response()
        }
        _ => status(405, "MethodNotAllowed"),
    }
}

fn url_query(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
