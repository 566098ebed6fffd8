use super::{Peer, Registry, Variant};
use crate::mcp::Mode;

macro_rules! file {
    ($directory:literal, $name:literal) => {
        (
            $name,
            include_str!(concat!("../../peers/", $directory, "/", $name)),
        )
    };
}

const FASTMCP: &[(&str, &str)] = &[
    file!("fastmcp", "requirements.txt"),
    file!("fastmcp", "server.py"),
];

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "typescript-1",
        registry: Registry::Npm,
        directory: "typescript-1",
        files: &[
            file!("typescript-1", "package.json"),
            file!("typescript-1", "package-lock.json"),
            file!("typescript-1", "server.js"),
        ],
        variants: &[server("TypeScript 1 stateful", Mode::Legacy, &[])],
    },
    Peer {
        name: "typescript-2",
        registry: Registry::Npm,
        directory: "typescript-2",
        files: &[
            file!("typescript-2", "package.json"),
            file!("typescript-2", "package-lock.json"),
            file!("typescript-2", "server.js"),
        ],
        variants: &[server("TypeScript 2 modern", Mode::Modern, &[])],
    },
    Peer {
        name: "go-sdk",
        registry: Registry::Go,
        directory: "go-sdk",
        files: &[
            file!("go-sdk", "go.mod"),
            file!("go-sdk", "go.sum"),
            file!("go-sdk", "main.go"),
        ],
        variants: &[
            server("Go SDK stateful", Mode::Legacy, &[]),
            server("Go SDK modern", Mode::Modern, &["-stateless"]),
        ],
    },
    Peer {
        name: "mcp-go",
        registry: Registry::Go,
        directory: "mcp-go",
        files: &[
            file!("mcp-go", "go.mod"),
            file!("mcp-go", "go.sum"),
            file!("mcp-go", "main.go"),
        ],
        variants: &[
            server("mcp-go stateful", Mode::Legacy, &[]),
            server("mcp-go modern", Mode::Modern, &[]),
        ],
    },
    Peer {
        name: "python-sdk",
        registry: Registry::PyPi,
        directory: "python-sdk",
        files: &[
            file!("python-sdk", "requirements.txt"),
            file!("python-sdk", "server.py"),
        ],
        variants: &[
            server("Python SDK stateful", Mode::Legacy, &[]),
            server("Python SDK modern", Mode::Modern, &[]),
        ],
    },
    Peer {
        name: "fastmcp",
        registry: Registry::PyPi,
        directory: "fastmcp",
        files: FASTMCP,
        variants: &[
            server("FastMCP stateful", Mode::Legacy, &[]),
            server("FastMCP stateless JSON", Mode::Legacy, &["--stateless"]),
            server("FastMCP modern", Mode::Modern, &[]),
        ],
    },
    Peer {
        name: "fastmcp-proxy",
        registry: Registry::PyPi,
        directory: "fastmcp",
        files: FASTMCP,
        variants: &[
            gateway("FastMCP proxy, legacy", Mode::Legacy, &["--proxy"]),
            gateway("FastMCP proxy, modern", Mode::Modern, &["--proxy"]),
        ],
    },
];

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
        row,
        mode,
        arguments,
        is_gateway: true,
    }
}
