"""An MCP client that logs its user in, with the Python SDK (`pip install mcp`).

    client.py TOOL JSON     calls the tool, prints its answer, and leaves the access token in the file `token`

A real client opens the login page in a browser. The authorization server of this example asks for nothing, so following its redirects is enough.
"""

import asyncio
import json
import pathlib
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

URL = "http://127.0.0.1:8080/mcp"
CALLBACK = "http://127.0.0.1:9/callback"  # nobody listens there: the redirect is read, not followed


class Login:
    """The user's browser, and where the client keeps its tokens."""

    token = client = query = None

    async def get_tokens(self):
        return self.token

    async def set_tokens(self, tokens) -> None:
        self.token = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client) -> None:
        self.client = client

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            while not url.startswith(CALLBACK):
                answer = await browser.get(url)
                if not answer.is_redirect:
                    sys.exit(f"the authorization server answers {answer.status_code}: {answer.text[:300]}")
                url = urljoin(url, answer.headers["location"])
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}

    async def code(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.query["code"], state=self.query.get("state"), iss=self.query.get("iss"))


async def main(tool: str, arguments: str) -> None:
    login = Login()
    about = OAuthClientMetadata(redirect_uris=[CALLBACK], client_name="example", token_endpoint_auth_method="none")
    oauth = OAuthClientProvider(URL, about, login, login.visit, login.code)
    async with httpx2.AsyncClient(auth=oauth, timeout=60) as http, Client(streamable_http_client(URL, http_client=http)) as client:
        result = await client.call_tool(tool, json.loads(arguments))
        print(result.content[0].text)
    pathlib.Path("token").write_text(login.token.access_token)


asyncio.run(main(*sys.argv[1:]))
