"""A service for orders. It speaks no MCP, has an OpenAPI document, and wants its API key in each request.

    service.py PORT KEY-FILE
"""

import json
import pathlib
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DOCUMENT = json.loads(pathlib.Path(__file__).with_name("openapi.json").read_text())
KEY = pathlib.Path(sys.argv[2]).read_text().strip()
ORDERS = {7: {"id": 7, "what": "a dinghy", "status": "paid"}}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            self.answer(200, DOCUMENT)
        else:
            self.about_an_order(lambda order: order)

    def do_DELETE(self) -> None:
        self.about_an_order(lambda order: order | {"status": "cancelled"})

    def do_HEAD(self) -> None:
        self.answer(200, None)

    def about_an_order(self, change) -> None:
        print(f"{self.command} {self.path}: key {self.headers['X-Api-Key'] == KEY}, token {'Authorization' in self.headers}", flush=True)
        named = re.fullmatch(r"/orders/(\d+)", self.path)
        if self.headers["X-Api-Key"] != KEY:
            self.answer(401, {"error": "the API key is missing or wrong"})
        elif named is None or int(named[1]) not in ORDERS:
            self.answer(404, {"error": "there is no such order"})
        else:
            ORDERS[int(named[1])] = change(ORDERS[int(named[1])])
            self.answer(200, ORDERS[int(named[1])])

    def answer(self, status: int, body) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
