"""Servers that people run, each with a few calls. `{dir}` stands for a directory that is new for each run, `{here}` for this one."""

from __future__ import annotations

import dataclasses
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Server:
    """A server and the calls to make."""

    registry: str
    """Where its package comes from: npm, pypi, go, or here for a small one that is written for this."""
    package: str
    command: tuple[str, ...]
    """The program, which the registry's client has installed, and its arguments."""
    calls: tuple[Call, ...] = ()
    files: tuple[str, ...] = ()
    """Shell commands that prepare the directory."""
    volatile: tuple[str, ...] = ()
    """Regular expressions for what differs from run to run."""
    wanted: str = ""
    """A program without which the server cannot run."""
    env: tuple[str, ...] = ()


EVERYTHING: tuple[Call, ...] = (
    ("echo", {"message": "hello"}),
    ("get-sum", {"a": 2, "b": 3}),
    ("get-annotated-message", {"messageType": "success", "includeImage": True}),
    ("get-tiny-image", {}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-resource-links", {"count": 3}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("get-env", {}),
    ("get-roots-list", {}),
    ("trigger-long-running-operation", {"duration": 1, "steps": 3}),
    ("trigger-sampling-request", {"prompt": "hello", "maxTokens": 10}),
    ("trigger-elicitation-request", {}),
    ("simulate-research-query", {"topic": "shoals", "ambiguous": False}),
)
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"

SERVERS: dict[str, Server] = {
    "everything": Server(
        "npm", "@modelcontextprotocol/server-everything", ("mcp-server-everything",), EVERYTHING, volatile=(TIME, UUID, r"\d\d?:\d\d:\d\d [AP]M")
    ),
    "filesystem": Server(
        "npm",
        "@modelcontextprotocol/server-filesystem",
        ("mcp-server-filesystem", "{dir}"),
        (
            ("list_allowed_directories", {}),
            ("write_file", {"path": "{dir}/a.txt", "content": "one\ntwo\n"}),
            ("read_text_file", {"path": "{dir}/a.txt", "head": 1}),
            ("list_directory", {"path": "{dir}"}),
            ("directory_tree", {"path": "{dir}"}),
            ("read_text_file", {"path": "/etc/passwd"}),
        ),
    ),
    "filesystem, by roots": Server(
        "npm",
        "@modelcontextprotocol/server-filesystem",
        ("mcp-server-filesystem",),
        (("list_allowed_directories", {}), ("list_directory", {"path": "{dir}"})),
    ),
    "memory": Server(
        "npm",
        "@modelcontextprotocol/server-memory",
        ("mcp-server-memory",),
        (
            ("create_entities", {"entities": [{"name": "a", "entityType": "b", "observations": ["c"]}]}),
            ("read_graph", {}),
            ("search_nodes", {"query": "a"}),
        ),
        env=("MEMORY_FILE_PATH={dir}/memory.json",),
    ),
    "sequential-thinking": Server(
        "npm",
        "@modelcontextprotocol/server-sequential-thinking",
        ("mcp-server-sequential-thinking",),
        (("sequentialthinking", {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}),),
    ),
    "playwright": Server(
        "npm",
        "@playwright/mcp",
        ("playwright-mcp", "--headless", "--no-sandbox", "--isolated", "--executable-path", "{chromium}", "--output-dir", "{dir}"),
        (
            ("browser_navigate", {"url": "data:text/html,<title>t</title><button>go</button>"}),
            ("browser_snapshot", {}),
            ("browser_evaluate", {"function": "() => document.title"}),
        ),
        wanted="chromium",
        volatile=(TIME, r"page-[^)\" ]*", r"console-[^)\" ]*", r"\d+ms"),
    ),
    "chrome-devtools": Server(
        "npm",
        "chrome-devtools-mcp",
        ("chrome-devtools-mcp", "--headless", "--isolated", "--executablePath", "{chromium}", "--chromeArg=--no-sandbox"),
        (("list_pages", {}),),
        wanted="chromium",
    ),
    "context7": Server("npm", "@upstash/context7-mcp", ("context7-mcp",)),
    "desktop-commander": Server("npm", "@wonderwhy-er/desktop-commander", ("desktop-commander", "--no-onboarding"), (("list_directory", {"path": "{dir}"}),)),
    "git (cyanheads)": Server("npm", "@cyanheads/git-mcp-server", ("git-mcp-server",), (("git_init", {"path": "{dir}"}),), volatile=(TIME, UUID)),
    "mermaid": Server("npm", "mcp-mermaid", ("mcp-mermaid",)),
    "chart": Server("npm", "@antv/mcp-server-chart", ("mcp-server-chart",)),
    "notion": Server("npm", "@notionhq/notion-mcp-server", ("notion-mcp-server",), env=("NOTION_TOKEN=none",)),
    "tavily": Server("npm", "tavily-mcp", ("tavily-mcp",), env=("TAVILY_API_KEY=none",)),
    "supabase": Server("npm", "@supabase/mcp-server-supabase", ("mcp-server-supabase", "--access-token", "none")),
    "commands": Server("npm", "mcp-server-commands", ("mcp-server-commands",), (("run_command", {"command": "echo hello"}),)),
    "map (apps)": Server("npm", "@modelcontextprotocol/server-map", ("mcp-map-server", "--stdio"), (("show-map", {"west": 1, "south": 1, "east": 2, "north": 2}),), volatile=(UUID,)),
    "pdf (apps)": Server("npm", "@modelcontextprotocol/server-pdf", ("mcp-pdf-server", "--stdio"), (("list_pdfs", {}),)),
    "budget (apps)": Server("npm", "@modelcontextprotocol/server-budget-allocator", ("mcp-budget-allocator-server", "--stdio"), (("get-budget-data", {}),), volatile=(r"-?\d+\.\d+",)),
    "git": Server(
        "pypi",
        "mcp-server-git",
        ("mcp-server-git", "--repository", "{dir}"),
        (("git_status", {"repo_path": "{dir}"}), ("git_log", {"repo_path": "{dir}"}), ("git_branch", {"repo_path": "{dir}", "branch_type": "local"})),
        files=("git init -q -b main .", "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first"),
        volatile=(r"\b[0-9a-f]{7,40}\b", TIME),
    ),
    "time": Server(
        "pypi",
        "mcp-server-time",
        ("mcp-server-time", "--local-timezone", "Europe/Berlin"),
        (("convert_time", {"source_timezone": "Asia/Tokyo", "time": "10:00", "target_timezone": "Europe/Paris"}), ("get_current_time", {"timezone": "no/where"})),
        volatile=(TIME,),
    ),
    "fetch": Server("pypi", "mcp-server-fetch", ("mcp-server-fetch", "--ignore-robots-txt"), (("fetch", {"url": "http://127.0.0.1:1/"}),)),
    "sqlite": Server(
        "pypi",
        "mcp-server-sqlite",
        ("mcp-server-sqlite", "--db-path", "{dir}/db"),
        (
            ("create_table", {"query": "CREATE TABLE t (a INTEGER, b TEXT)"}),
            ("write_query", {"query": "INSERT INTO t VALUES (1, 'x')"}),
            ("read_query", {"query": "SELECT * FROM t"}),
            ("append_insight", {"insight": "one"}),
        ),
    ),
    "calculator": Server("pypi", "mcp-server-calculator", ("mcp-server-calculator",), (("calculate", {"expression": "6*7"}),)),
    "excel": Server(
        "pypi",
        "excel-mcp-server",
        ("excel-mcp-server", "stdio"),
        (
            ("create_workbook", {"path": "{dir}/a.xlsx"}),
            ("write_range", {"path": "{dir}/a.xlsx", "sheet": "Sheet1", "at": "A1", "rows": [["a", 1], ["b", None]]}),
            ("read_range", {"path": "{dir}/a.xlsx", "sheet": "Sheet1"}),
            ("no_such_tool", {}),
        ),
    ),
    "arxiv": Server("pypi", "arxiv-mcp-server", ("arxiv-mcp-server", "--storage-path", "{dir}"), (("list_papers", {}),)),
    "duckduckgo": Server("pypi", "duckduckgo-mcp-server", ("duckduckgo-mcp-server",)),
    "fastmcp, skills and apps": Server("pypi", "fastmcp", ("python", "{here}/skills.py"), (("add", {"a": 1, "b": 2}), ("show", {})), files=("mkdir -p skills/greet", "printf -- '---\\nname: greet\\ndescription: Greets.\\n---\\nSay hello.\\n' > skills/greet/SKILL.md")),
    "Go SDK, untyped value": Server("go", "github.com/modelcontextprotocol/go-sdk", ("field-go",), (("anything", {"value": [1, {"a": None}]}), ("anything", {"value": "x"}))),
    "Java SDK 0.17": Server("java", "io.modelcontextprotocol.sdk:mcp", ("0.17.0",), (("echo", {"text": "hello"}), ("ask", {}))),
    "Java SDK 1.1": Server("java", "io.modelcontextprotocol.sdk:mcp", ("1.1.0",), (("echo", {"text": "hello"}), ("ask", {}))),
}
