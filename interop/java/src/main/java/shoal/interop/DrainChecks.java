package shoal.interop;

import static shoal.interop.Peer.PATIENCE;
import static shoal.interop.Peer.next;
import static shoal.interop.Report.same;

import java.net.URI;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

/** Shuts an edge down while clients over each transport wait there for an answer. */
final class DrainChecks {
    private final URI url;
    private final String process;
    private final Report report;

    DrainChecks(URI url, String process, Report report) {
        this.url = url;
        this.process = process;
        this.report = report;
    }

    void run() {
        var threads = Executors.newCachedThreadPool();
        var answers = new EnumMap<Transport, CompletableFuture<String>>(Transport.class);
        report.check("edge_told_to_end", () -> {
            for (var transport : Transport.values()) {
                var peer = new Peer(transport, url, PATIENCE);
                peer.client.initialize();
                var job = Map.<String, Object>of("steps", 10, "interval_ms", 500);
                answers.put(transport, CompletableFuture.supplyAsync(() -> peer.watch("long_job", job), threads));
                next("progress", peer.progress);
            }
            same("status of kill", 0, new ProcessBuilder("kill", "-TERM", process).start().waitFor());
            return null;
        });
        answers.forEach((transport, answer) -> report.check("answer_over_" + transport, () -> {
            same("text", "done after 10 steps", answer.get());
            return null;
        }));
        threads.shutdownNow();
    }
}
