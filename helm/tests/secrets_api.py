"""The part of Kubernetes' API that the chart's Job uses: reading and filling Secrets, with the rights of its Role."""
import base64
import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from chart import NAMESPACE

TOKEN = "the token of the pod"


class SecretsApi:
    """Serves the Secrets of a render on loopback, over TLS."""

    def __init__(self, binary, directory, objects):
        self.secrets = {item["metadata"]["name"]: {**item, "metadata": {**item["metadata"], "resourceVersion": "1"}}
                        for item in objects if item["kind"] == "Secret"}
        self.rules = [rule for item in objects if item["kind"] == "Role" for rule in item["rules"]]
        self.account = Path(directory, "account")
        self.account.mkdir()
        made = Path(directory, "api")
        made.mkdir()
        subprocess.run([binary, "certificates", "--name", "localhost", str(made)], check=True, capture_output=True)
        (self.account / "ca.crt").write_bytes((made / "nodes" / "ca.crt").read_bytes())
        (self.account / "token").write_text(TOKEN)
        (self.account / "namespace").write_text(NAMESPACE)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made / "nodes" / "tls.crt", made / "nodes" / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def environment(self):
        return {"KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": str(self.server.server_port)}

    def files(self, name):
        """The content of a Secret."""
        return {key: base64.b64decode(text) for key, text in self.secrets[name].get("data", {}).items()}

    def may(self, verb, name):
        return any(verb in rule["verbs"] and "secrets" in rule["resources"] and name in rule["resourceNames"] for rule in self.rules)

    def end(self):
        self.server.shutdown()
        self.server.server_close()

    def handler(self):
        api = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, code, body):
                text = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def secret(self, verb):
                """The requested Secret, or None after an error answer."""
                prefix = f"/api/v1/namespaces/{NAMESPACE}/secrets/"
                path = self.path.partition("?")[0]
                name = path.removeprefix(prefix)
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    self.answer(401, {})
                elif not path.startswith(prefix) or not api.may(verb, name):
                    self.answer(403, {})
                elif name not in api.secrets:
                    self.answer(404, {})
                else:
                    return api.secrets[name]
                return None

            def do_GET(self):
                secret = self.secret("get")
                if secret:
                    self.answer(200, secret)

            def do_PATCH(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                secret = self.secret("patch")
                if not secret:
                    return
                if self.headers["Content-Type"] != "application/merge-patch+json":
                    self.answer(415, {})
                elif body["metadata"]["resourceVersion"] != secret["metadata"]["resourceVersion"]:
                    self.answer(409, {})
                else:
                    secret["data"] = {**secret.get("data", {}), **body["data"]}
                    secret["metadata"]["resourceVersion"] = str(int(secret["metadata"]["resourceVersion"]) + 1)
                    self.answer(200, secret)

        return Handler
