"""The part of Kubernetes' API that a controller uses: make, read, list, watch and replace objects, over HTTP on loopback."""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class ObjectsApi:
    """Objects by collection (`api/v1/namespaces/NAMESPACE/services`) and name. Other collections are not found."""

    def __init__(self, collections):
        self.objects = {collection: {} for collection in collections}
        self.version, self.changes, self.ended = 0, [], False
        self.changed = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self, namespace):
        cluster = {"server": f"http://127.0.0.1:{self.server.server_port}"}
        context = {"cluster": "it", "user": "it", "namespace": namespace}
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it", "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {}}], "contexts": [{"name": "it", "context": context}],
        })

    def put(self, collection, name, **content):
        with self.changed:
            self.version += 1
            before = self.objects[collection].get(name)
            metadata = {"uid": f"{collection}/{name}", "creationTimestamp": "2026-01-01T00:00:00Z", **content.pop("metadata", {})}
            metadata |= {"name": name, "namespace": collection.split("/")[-2], "resourceVersion": str(self.version)}
            self.objects[collection][name] = {**content, "metadata": metadata}
            self.tell(collection, "MODIFIED" if before else "ADDED", self.objects[collection][name])

    def delete(self, collection, name):
        with self.changed:
            self.version += 1
            gone = self.objects[collection].pop(name)
            gone["metadata"]["resourceVersion"] = str(self.version)
            self.tell(collection, "DELETED", gone)

    def get(self, collection, name):
        with self.changed:
            return self.objects[collection][name]

    def tell(self, collection, kind, item):
        self.changes.append((self.version, collection, json.dumps({"type": kind, "object": item})))
        self.changed.notify_all()

    def end(self):
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def handler(self):
        api = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, code, body):
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def fail(self, code):
                reason = {404: "NotFound", 409: "Conflict"}[code]
                self.answer(code, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": reason, "reason": reason, "code": code})

            def body(self):
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def do_GET(self):
                url = urlsplit(self.path)
                path, query = url.path.strip("/"), parse_qs(url.query)
                if path in api.objects:
                    return self.watch(path, int(query["resourceVersion"][0])) if "watch" in query else self.list(path)
                collection, _, name = path.rpartition("/")
                found = api.objects.get(collection, {}).get(name)
                return self.answer(200, found) if found else self.fail(404)

            def list(self, collection):
                with api.changed:
                    items, version = list(api.objects[collection].values()), str(api.version)
                self.answer(200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})

            def watch(self, collection, since):
                self.send_response(200)
                self.end_headers()
                while not api.ended:
                    with api.changed:
                        news = [(version, text) for version, of, text in api.changes if of == collection and version > since]
                        if not news:
                            api.changed.wait(1)
                    for since, text in news:
                        self.wfile.write(f"{text}\n".encode())
                    self.wfile.flush()

            def do_PUT(self):
                collection, _, name = urlsplit(self.path).path.strip("/").rpartition("/")
                body = self.body()
                if api.get(collection, name)["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
                    return self.fail(409)
                api.put(collection, name, **body)
                return self.answer(200, api.get(collection, name))

            def do_POST(self):
                """Makes an object in a known collection. Accepts events, but drops them."""
                collection, body = urlsplit(self.path).path.strip("/"), self.body()
                if collection in api.objects:
                    if body["metadata"]["name"] in api.objects[collection]:
                        return self.fail(409)
                    api.put(collection, body["metadata"]["name"], **body)
                return self.answer(201, body)

        return Handler
