use super::Registry::{self, Go, Npm, PyPi};
use super::{Peer, Variant};
use crate::mcp::Mode::{self, Legacy, Modern};

macro_rules! files {
    ($directory:literal: $($name:literal),*) => {
        ($directory, &[$(($name, include_str!(concat!("../../peers/", $directory, "/", $name)))),*])
    };
}

type Files = (&'static str, &'static [(&'static str, &'static str)]);

const TYPESCRIPT_1: Files =
    files!("typescript-1": "package.json", "package-lock.json", "server.js");
const TYPESCRIPT_2: Files =
    files!("typescript-2": "package.json", "package-lock.json", "server.js");
const GO_SDK: Files = files!("go-sdk": "go.mod", "go.sum", "main.go");
const MCP_GO: Files = files!("mcp-go": "go.mod", "go.sum", "main.go");
const PYTHON_SDK: Files = files!("python-sdk": "requirements.txt", "server.py");
const FASTMCP: Files = files!("fastmcp": "requirements.txt", "server.py");

pub(crate) const PEERS: &[Peer] = &[
    peer(
        "typescript-1",
        Npm,
        TYPESCRIPT_1,
        &[server("TypeScript 1 stateful", Legacy, &[])],
    ),
    peer(
        "typescript-2",
        Npm,
        TYPESCRIPT_2,
        &[server("TypeScript 2 modern", Modern, &[])],
    ),
    peer(
        "go-sdk",
        Go,
        GO_SDK,
        &[
            server("Go SDK stateful", Legacy, &[]),
            server("Go SDK modern", Modern, &["-stateless"]),
        ],
    ),
    peer(
        "mcp-go",
        Go,
        MCP_GO,
        &[
            server("mcp-go stateful", Legacy, &[]),
            server("mcp-go modern", Modern, &[]),
        ],
    ),
    peer(
        "python-sdk",
        PyPi,
        PYTHON_SDK,
        &[
            server("Python SDK stateful", Legacy, &[]),
            server("Python SDK modern", Modern, &[]),
        ],
    ),
    peer(
        "fastmcp",
        PyPi,
        FASTMCP,
        &[
            server("FastMCP stateful", Legacy, &[]),
            server("FastMCP stateless JSON", Legacy, &["--stateless"]),
            server("FastMCP modern", Modern, &[]),
        ],
    ),
    peer(
        "fastmcp-proxy",
        PyPi,
        FASTMCP,
        &[
            gateway("FastMCP proxy, legacy", Legacy, &["--proxy"]),
            gateway("FastMCP proxy, modern", Modern, &["--proxy"]),
        ],
    ),
];

const fn peer(
    name: &'static str,
    registry: Registry,
    (directory, files): Files,
    variants: &'static [Variant],
) -> Peer {
    Peer {
        name,
        registry,
        directory,
        files,
        variants,
    }
}

const fn server(row: &'static str, mode: Mode, arguments: &'static [&'static str]) -> Variant {
    Variant {
        row,
        mode,
        arguments,
        is_gateway: false,
    }
}

const fn gateway(row: &'static str, mode: Mode, arguments: &'static [&'static str]) -> Variant {
    Variant {
        is_gateway: true,
        ..server(row, mode, arguments)
    }
}
