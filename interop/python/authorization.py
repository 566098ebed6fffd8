"""Authorizes with the official Python SDK, as a user who clicks through everything, and reports what works.

By hand: `python authorization.py --url http://127.0.0.1:PORT/mcp --era modern --ttl 5`.
"""

from __future__ import annotations

import argparse
import logging
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from harness import Runner, expect, expect_equal

MODES = {"legacy": "legacy", "modern": "auto"}
# Nothing listens here, because the redirect is read and not followed.
CALLBACK = "http://127.0.0.1:9/callback"
MOST_REDIRECTS = 10


class Memory:
    """The SDK's storage."""

    def __init__(self) -> None:
        self.tokens = []
        self.client = None

    async def get_tokens(self):
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client) -> None:
        self.client = client


class Browser:
    """Follows redirects to the client's callback."""

    def __init__(self) -> None:
        self.visits = 0
        self._http = httpx2.AsyncClient(follow_redirects=False, trust_env=False)
        self._called_back = None

    async def visit(self, url: str) -> None:
        self.visits += 1
        for _ in range(MOST_REDIRECTS):
            answer = await self._http.get(url)
            expect(answer.is_redirect, f"{answer.status_code} at {url}: {answer.text[:300]}")
            url = urljoin(url, answer.headers["location"])
            if url.startswith(CALLBACK):
                self._called_back = parse_qs(urlsplit(url).query)
                return
        raise AssertionError("too many redirects")

    async def callback(self) -> AuthorizationCodeResult:
        query = {name: values[0] for name, values in self._called_back.items()}
        expect("code" in query, f"no code: {query}")
        return AuthorizationCodeResult(
            code=query["code"], state=query.get("state"), iss=query.get("iss")
        )


async def run(args: argparse.Namespace) -> int:
    runner, memory, browser = Runner([], []), Memory(), Browser()
    provider = OAuthClientProvider(
        args.url,
        OAuthClientMetadata(
            redirect_uris=[CALLBACK],
            client_name="interop-python",
            token_endpoint_auth_method="none",
        ),
        memory,
        browser.visit,
        browser.callback,
    )

    async def call(tool: str, arguments: dict) -> str:
        result = await client.call_tool(tool, arguments)
        expect(not result.is_error, f"{result}")
        return result.content[0].text

    async def authorizes() -> None:
        expect_equal(await call("echo", {"text": "hello"}), "hello", "answer")
        expect_equal(browser.visits, 1, "visits of the browser")
        expect(memory.client is not None, "the client did not register")
        expect_equal(memory.tokens[-1].scope, "mcp", "scope")

    async def refreshes() -> None:
        before = len(memory.tokens)
        await anyio.sleep(args.ttl + 1)
        expect_equal(await call("echo", {"text": "again"}), "again", "answer")
        expect(len(memory.tokens) > before, "the token was not refreshed")
        expect_equal(browser.visits, 1, "visits of the browser")

    async def steps_up() -> None:
        expect("3" in await call("add", {"a": 1, "b": 2}), "not the sum")
        expect_equal(browser.visits, 2, "visits of the browser")
        granted = memory.tokens[-1].scope.split()
        expect({"mcp", "math"} <= set(granted), f"granted: {granted}")

    try:
        async with httpx2.AsyncClient(auth=provider, trust_env=False, timeout=60) as http:
            transport = streamable_http_client(args.url, http_client=http)
            client = Client(transport, mode=MODES[args.era], read_timeout_seconds=60)
            async with client:
                await runner.run("authorizes", authorizes)
                await runner.run("refreshes", refreshes)
                await runner.run("steps_up", steps_up)
    except Exception as error:
        runner.fail("connect", error)
    return 1 if runner.failed else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--era", choices=MODES, required=True)
    parser.add_argument("--ttl", type=int, required=True, help="seconds that a token is good for")
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    sys.exit(anyio.run(run, parser.parse_args()))


if __name__ == "__main__":
    main()
