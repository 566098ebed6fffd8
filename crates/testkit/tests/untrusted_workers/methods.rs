use std::fmt;
use std::fs;
use std::path::Path;

use prost::Message as _;
use shoal_rpc::proto::node::v1 as node;
use shoal_rpc::proto::types::v1::Versions;
use shoal_rpc::proto::worker::v1 as worker;

use crate::POOL;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    service: String,
    name: String,
}

impl Method {
    pub(crate) fn path(&self) -> String {
        format!("/{}/{}", self.service, self.name)
    }

    pub(crate) fn is_for_workers(&self) -> bool {
        self.service.ends_with(".WorkerLink")
    }
}

impl fmt::Display for Method {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = self.service.rsplit('.').next().unwrap_or_default();
        write!(out, "{service}/{}", self.name)
    }
}

pub(crate) fn methods() -> Vec<Method> {
    let mut found = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/shoal"),
        &mut found,
    );
    found.sort_by_key(Method::path);
    assert!(found.len() >= 4, "{found:?}");
    found
}

fn collect(directory: &Path, found: &mut Vec<Method>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (mut package, mut service) = ("", "");
        for line in text.lines().map(str::trim) {
            let word = |keyword| {
                line.strip_prefix(keyword)
                    .and_then(|rest| rest.split([' ', ';', '(']).next())
            };
            if let Some(name) = word("package ") {
                package = name;
            } else if let Some(name) = word("service ") {
                service = name;
            } else if let Some(name) = word("rpc ") {
                found.push(Method {
                    service: format!("{package}.{service}"),
                    name: name.to_owned(),
                });
            }
        }
    }
}

/// Returns the messages to send, in a list for each attempt.
pub(crate) fn messages(method: &Method, node: &str, known_worker: &str) -> Vec<Vec<Vec<u8>>> {
    match method.path().as_str() {
        "/shoal.worker.v1.WorkerLink/Link" => ["stranger-1", known_worker]
            .map(|worker| vec![worker_hello(worker), announce()])
            .to_vec(),
        "/shoal.node.v1.NodeLink/Link" => vec![vec![edge_hello(), open()]],
        "/shoal.node.v1.NodeConsole/Inspect" => {
            let what = node::inspect_request::What::Node(node::InspectNode {});
            let request = node::InspectRequest {
                to: node.to_owned(),
                what: Some(what),
            };
            vec![vec![request.encode_to_vec()]]
        }
        "/shoal.node.v1.NodeConsole/Act" => {
            let end = node::EndSession {
                session: "s".to_owned(),
            };
            let request = node::ActRequest {
                to: node.to_owned(),
                what: Some(node::act_request::What::EndSession(end)),
            };
            vec![vec![request.encode_to_vec()]]
        }
        other => panic!("say here what somebody sends to {other}"),
    }
}

fn versions() -> Option<Versions> {
    Some(Versions {
        lowest: 1,
        highest: 4,
    })
}

fn worker_hello(worker: &str) -> Vec<u8> {
    let hello = worker::Hello {
        versions: versions(),
        worker: worker.to_owned(),
        incarnation: 7,
        ..worker::Hello::default()
    };
    frame_of_worker(worker::worker_frame::Frame::Hello(hello))
}

fn announce() -> Vec<u8> {
    let tool = br#"{"name":"stolen","inputSchema":{"type":"object"}}"#;
    let catalog = worker::Catalog {
        tools: vec![tool.to_vec().into()],
        ..worker::Catalog::default()
    };
    let announce = worker::Announce {
        pool: POOL.to_owned(),
        catalog: Some(catalog),
        ..worker::Announce::default()
    };
    frame_of_worker(worker::worker_frame::Frame::Announce(announce))
}

fn frame_of_worker(frame: worker::worker_frame::Frame) -> Vec<u8> {
    worker::WorkerFrame { frame: Some(frame) }.encode_to_vec()
}

fn edge_hello() -> Vec<u8> {
    let hello = node::Hello {
        versions: versions(),
        from: "stranger-1".to_owned(),
        ..node::Hello::default()
    };
    let frame = node::edge_frame::Frame::Hello(hello);
    node::EdgeFrame { frame: Some(frame) }.encode_to_vec()
}

fn open() -> Vec<u8> {
    let open = node::Open {
        flight: 1,
        principal: "anybody".to_owned(),
        ..node::Open::default()
    };
    let frame = node::edge_frame::Frame::Open(open);
    node::EdgeFrame { frame: Some(frame) }.encode_to_vec()
}
