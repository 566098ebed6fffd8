"""A stdio server with an extension of its own, and a tool that it runs as a task alone. Python 3 without packages.

Flags:
  --era legacy|modern|dual  what it speaks; dual: what its first request asks for, and the extension only in 2026-07-28
  --name NAME               what it calls itself, and its resource (`test://NAME`)
  --extension NAME          the extension that it declares, `example.com/things` by default
  --record FILE             one line for each thing that it did
Methods of the extension:
  things/list, other/list   its name, the parameters, and the extensions that its client has declared
  things/slow               tells a step, and answers when it is cancelled, which it records
  things/crash              records, and ends the process
  notifications/things/tell is recorded with what it says
Tool:
  job                       steps: progress that it tells; ask: whether it asks its client; wait: until it is cancelled
"""

import json
import os
import sys
import threading


def flag(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
TASKS = META + "tasks"
SPEAKS, NAME, RECORD = flag("--era", "legacy"), flag("--name", "extended"), flag("--record")
EXTENSION = flag("--extension", "example.com/things")
FORM = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
LOCK = threading.Lock()
CANCELLED, ASKED, JOBS = {}, {}, {}
ERA, CLIENT = None, {}


def record(line):
    if RECORD:
        with open(RECORD, "a") as file:
            file.write(line + "\n")


def write(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def capabilities():
    declared = {"tools": {}, "resources": {}}
    if SPEAKS != "dual" or ERA == "modern":
        declared["extensions"] = {EXTENSION: {}}
    if ERA == "modern":
        declared["extensions"][TASKS] = {}
    else:
        declared["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
    return declared


def complete(result):
    return {"resultType": "complete", **result} if ERA == "modern" else result


class Job:
    """A task that runs in a thread."""

    def __init__(self, number, params):
        self.id = f"task-{number}"
        self.token = params.get("_meta", {}).get("progressToken")
        self.arguments = params.get("arguments", {})
        self.over, self.answered, self.stopped = (threading.Event() for _ in range(3))
        self.status, self.answer, self.result = "working", None, None
        JOBS[self.id] = self
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        record("job")
        for step in range(self.arguments.get("steps", 0)):
            write({"method": "notifications/progress",
                   "params": {"progressToken": self.token, "progress": step + 1}})
        if self.arguments.get("ask"):
            self.status = "input_required"
            if ERA == "legacy":
                ASKED[self.id] = self
                write({"id": self.id, "method": "elicitation/create",
                       "params": {**FORM, "_meta": {META + "related-task": {"taskId": self.id}}}})
            self.answered.wait()
            self.status = "working"
        if self.arguments.get("wait"):
            self.stopped.wait()
            record("job cancelled")
        self.end("cancelled" if self.stopped.is_set() else "completed")

    def end(self, status):
        said = {"content": [{"type": "text", "text": json.dumps(["done", self.answer])}]}
        self.result, self.status = complete(said), status
        self.over.set()

    def get(self):
        task = {"taskId": self.id, "status": self.status, "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        if ERA == "legacy":
            return {**task, "ttl": None, "pollInterval": 50}
        task = complete({**task, "ttlMs": 60000, "pollIntervalMs": 50})
        if self.status == "completed":
            task["result"] = self.result
        if self.status == "input_required":
            task["inputRequests"] = {"name": {"method": "elicitation/create", "params": FORM}}
        return task


def call(number, params, client):
    if ERA == "legacy" and "task" not in params:
        return {"error": {"code": -32601, "message": "job requires a task"}}
    if ERA == "modern" and TASKS not in client.get("extensions", {}):
        return {"error": {"code": -32021, "message": "job requires the tasks extension",
                          "data": {"requiredCapabilities": {"extensions": {TASKS: {}}}}}}
    job = Job(number, params)
    if ERA == "legacy":
        return {"result": {"task": job.get()}}
    return {"result": {**job.get(), "resultType": "task"}}


def of_task(method, params):
    job = JOBS.get(params["taskId"])
    if job is None:
        return {"error": {"code": -32602, "message": "no such task"}}
    if method == "tasks/cancel":
        job.stopped.set()
        job.over.wait()
    if method == "tasks/update":
        job.answer = params["inputResponses"]["name"]
        job.answered.set()
    if method != "tasks/result":
        return {"result": job.get()}
    job.over.wait()
    if job.status == "cancelled":
        return {"error": {"code": -32800, "message": "the task was cancelled"}}
    return {"result": {**job.result, "_meta": {META + "related-task": {"taskId": job.id}}}}


def of_extension(number, method, params, client):
    if method == "things/crash":
        record("crash")
        os._exit(1)
    if method == "things/slow":
        CANCELLED[number] = threading.Event()
        write({"method": "notifications/things/step", "params": {"step": 1}})
        record("slow")
        CANCELLED[number].wait()
        record("slow cancelled")
        return None
    declared = client.get("extensions")
    return {"result": complete({"name": NAME, "era": ERA, "params": params, "client": declared})}


def answer(message):
    global ERA, CLIENT
    method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        job = ASKED.get(number)
        if job:
            job.answer = message.get("result") or message.get("error")
            job.answered.set()
        return None
    if number is None:
        if method == "notifications/cancelled" and params["requestId"] in CANCELLED:
            CANCELLED[params["requestId"]].set()
        if method.startswith("notifications/things/"):
            params.pop("_meta", None)
            record(f"{method} {json.dumps(params)}")
        return None
    client = params.get("_meta", {}).pop(META + "clientCapabilities", CLIENT)
    if method == "initialize" and SPEAKS != "modern":
        ERA, CLIENT = ERA or "legacy", params["capabilities"]
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities(),
                           "serverInfo": {"name": NAME, "version": "1"}}}
    if method == "server/discover" and ERA == "legacy" and SPEAKS == "dual":
        return {"error": {"code": -32600, "message": f"this connection does not speak {VERSION}"}}
    if method == "server/discover" and SPEAKS != "legacy":
        ERA = "modern"
        return {"result": complete({
            "supportedVersions": [VERSION], "capabilities": capabilities(),
            "_meta": {META + "serverInfo": {"name": NAME, "version": "1"}}})}
    if method == "tools/list":
        tool = {"name": "job", "inputSchema": {"type": "object"}}
        if ERA == "legacy":
            tool["execution"] = {"taskSupport": "required"}
        return {"result": complete({"tools": [tool]})}
    if method == "resources/list":
        return {"result": complete({"resources": [{"uri": f"test://{NAME}", "name": NAME}]})}
    if method == "tools/call":
        return call(number, params, client)
    if method in ("tasks/get", "tasks/result", "tasks/update", "tasks/cancel"):
        return of_task(method, params)
    is_known = method in ("things/list", "things/slow", "things/crash", "other/list")
    if is_known and (ERA == "modern" or SPEAKS != "dual"):
        return of_extension(number, method, params, client)
    return {"error": {"code": -32601, "message": f"{NAME} does not know {method}"}}


def serve(message):
    said = answer(message)
    if said is not None:
        write({"id": message["id"], **said})


for line in sys.stdin:
    message = json.loads(line)
    waits = message.get("method") in ("things/slow", "tasks/result", "tasks/cancel")
    if waits:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    else:
        serve(message)
