package shoal.interop;

import static shoal.interop.Peer.PATIENCE;
import static shoal.interop.Peer.next;
import static shoal.interop.Report.that;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import shoal.interop.CuttingProxy.Cut;

/**
 * Compares lost connections and sessions at a server of the Go SDK that keeps its events, and through Shoal. Nothing
 * may be worse through Shoal.
 */
final class LossChecks {
    /** When a client gives up a call, which takes 1.5 seconds without a loss. */
    private static final Duration GIVES_UP = Duration.ofSeconds(4);

    private static final Predicate<String> LISTENS =
            Pattern.compile("(?is)^GET (?!.*last-event-id:)").asPredicate();
    private static final Predicate<String> RESUMES =
            Pattern.compile("(?is)^GET .*last-event-id:").asPredicate();

    private final Transport transport;
    private final Server shoal;
    private final Server direct;
    private final Report report;
    private final ExecutorService threads = Executors.newCachedThreadPool();

    LossChecks(Transport transport, URI shoal, URI direct, Report report) {
        this.transport = transport;
        this.shoal = new Server(shoal, "long_job", Map.of("steps", 5, "interval_ms", 300));
        this.direct = new Server(direct, "work", Map.of("steps", 30, "label", "loss"));
        this.report = report;
    }

    void run() {
        // Concurrently, because clients that do not resume time out.
        try {
            var cuts = new EnumMap<Cut, Future<String>>(Cut.class);
            for (var how : Cut.values()) {
                cuts.put(how, threads.submit(() -> compare(patience -> loseConnections(direct, how, patience),
                        patience -> loseConnections(shoal, how, patience))));
            }
            var lost = threads.submit(() -> compare(patience -> loseSession(direct), patience -> loseSession(shoal)));
            cuts.forEach((how, found) -> report.check("stream_" + how.name().toLowerCase(Locale.ROOT), found::get));
            report.check("session_lost", lost::get);
        } finally {
            threads.shutdownNow();
        }
    }

    /** Scenarios that succeed directly get all the time that they need through Shoal. */
    private static String compare(Scenario directly, Scenario throughShoal) throws Exception {
        var direct = directly.run(GIVES_UP);
        var shoal = throughShoal.run(direct.answered ? PATIENCE : GIVES_UP);
        that(shoal.answered || !direct.answered, "the call is answered only directly: " + direct + "; " + shoal);
        that(shoal.next || !direct.next, "the next call works only directly: " + direct + "; " + shoal);
        that(shoal.listens || !direct.listens, "it listens again only directly: " + direct + "; " + shoal);
        return "directly " + direct + "; through Shoal " + shoal;
    }

    /** Cuts the streams of a client while its call runs. */
    private Seen loseConnections(Server server, Cut how, Duration patience) throws Exception {
        try (var proxy = new CuttingProxy(server.url);
                var peer = new Peer(transport, proxy.url(), patience)) {
            peer.client.initialize();
            var listening = heads(proxy, "GET ", 1);
            var call = CompletableFuture.supplyAsync(() -> peer.watch(server.job, server.jobArguments), threads);
            that(proxy.passesProgress(PATIENCE), "no progress");
            next("progress", peer.progress);
            proxy.cut(how);
            var answered = call.handle((text, error) -> error == null).get();
            var after = proxy.heads().subList(listening, proxy.heads().size());
            var resumed = after.stream().anyMatch(RESUMES);
            var next = server.echoes(peer);
            var listens = proxy.heads().stream().skip(listening).anyMatch(LISTENS);
            if (listens && server.equals(shoal)) {
                peer.toolsChanged.clear();
                peer.changeTools();
                peer.call("toggle_bonus_tool", Map.of());
            }
            return new Seen(answered, resumed, next, listens);
        }
    }

    /** Ends a client's session without its knowledge. */
    private Seen loseSession(Server server) throws Exception {
        try (var proxy = new CuttingProxy(server.url);
                var peer = new Peer(transport, proxy.url(), PATIENCE)) {
            peer.client.initialize();
            server.echoes(peer);
            var delete = HttpRequest.newBuilder(server.url).DELETE().header("Mcp-Session-Id", proxy.session());
            var answer = java.net.http.HttpClient.newHttpClient()
                    .send(delete.build(), HttpResponse.BodyHandlers.discarding());
            that(answer.statusCode() / 100 == 2, "DELETE: " + answer.statusCode());
            // Whether the client repeats the call that detects the loss is a race in the SDK.
            server.echoes(peer);
            var next = server.echoes(peer);
            return new Seen(next, false, next, false);
        }
    }

    private static int heads(CuttingProxy proxy, String method, int many) throws InterruptedException {
        var deadline = System.nanoTime() + PATIENCE.toNanos();
        while (proxy.heads().stream().filter(head -> head.startsWith(method)).count() < many) {
            that(System.nanoTime() < deadline, "no " + method + "within " + PATIENCE);
            Thread.sleep(10);
        }
        return proxy.heads().size();
    }

    private interface Scenario {
        Seen run(Duration patience) throws Exception;
    }

    /** The effects of a loss. */
    private record Seen(boolean answered, boolean resumed, boolean next, boolean listens) {
        @Override
        public String toString() {
            return (answered ? "answered" : "not answered") + (resumed ? " by resuming" : "")
                    + (listens ? ", listens again" : "")
                    + (next ? "" : ", nor is the next call");
        }
    }

    private record Server(URI url, String job, Map<String, Object> jobArguments) {
        boolean echoes(Peer peer) {
            try {
                return peer.call("echo", Map.of("text", "hello")).equals("hello");
            } catch (RuntimeException error) {
                if (System.getenv("INTEROP_TRACE") != null) {
                    error.printStackTrace();
                }
                return false;
            }
        }
    }
}
