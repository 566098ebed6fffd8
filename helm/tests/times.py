#!/usr/bin/env python3
"""terminationGracePeriodSeconds: the sum of the deadlines of `[shutdown]`, as often as each role uses them."""
from chart import Report, render, value_files

# Settings, and the seconds of edge, session node and worker. Defaults: calls 15 s, streams 2 s, connections 6 s, sessions 4 s, workers 5 s,
# telemetry 2 s, balancer_delay 5 s for the edge; 2 s for the exit; a margin of 5 s.
CASES = [
    # edge: 5 + 6 + 15 + 2*2 + 2*4 + 2, session: 15 + 2 + 4*4 + 2, worker: 2*15 + 2 + 5 + 2; each + 2 + 5
    ([], (47, 42, 46)),
    (["config.shutdown.calls=1m 15s"], (107, 102, 166)),
    # Half a second counts once for session node and worker, rounded up, and twice for the edge.
    (["config.shutdown.streams=500ms"], (44, 41, 45)),
    (["config.shutdown.streams=1ns"], (44, 41, 45)),
    (["config.shutdown.calls=1.5s"], (34, 29, 19)),
    (["config.shutdown.calls=0s"], (32, 27, 16)),
    (["config.shutdown.workers=1h 1m 1s"], (47, 42, 3702)),
    (["config.shutdown.sessions=10s"], (59, 66, 46)),
    (["config.shutdown.connections=10s"], (51, 42, 46)),
    (["config.shutdown.telemetry=3seconds"], (48, 43, 47)),
    (["config.shutdown.report_every=1h"], (47, 42, 46)),
    (["edge.config.shutdown.balancer_delay=20s"], (62, 42, 46)),
    (["pools.demo.config.shutdown.calls=10m"], (47, 42, 1216)),
    (["poolDefaults.config.shutdown.calls=1day"], (47, 42, 172816)),
    (["defaults.graceMarginSeconds=0"], (42, 37, 41)),
    (["session.terminationGracePeriodSeconds=7"], (47, 7, 46)),
]


def seconds(sets):
    objects = render(value_files()["trial"], sets=sets)
    spec = {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in objects if item["kind"] == "Deployment"}
    return tuple(spec[f"shoal-{name}"]["terminationGracePeriodSeconds"] for name in ("edge", "session", "worker-demo"))


def main():
    report = Report()
    for sets, expected in CASES:
        found = seconds(sets)
        report.say(", ".join(sets) or "defaults", [] if found == expected else [f"{found}, not {expected}"])
    report.end()


if __name__ == "__main__":
    main()
