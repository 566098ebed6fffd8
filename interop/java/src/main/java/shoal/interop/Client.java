package shoal.interop;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ClientCapabilities;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Drives Shoal's demo pool with the official Java SDK over its HttpClient transport, and reports what works.
 *
 * <p>By hand: {@code java -cp 'target/classes:target/dependency/*' shoal.interop.Client --url http://127.0.0.1:PORT/mcp}
 */
public final class Client {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final BlockingQueue<Double> progress = new LinkedBlockingQueue<>();
    private final BlockingQueue<List<Tool>> toolsChanged = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> logged = new LinkedBlockingQueue<>();
    private final McpSyncClient client;
    private int failed;

    private Client(URI url) {
        var transport = HttpClientStreamableHttpTransport.builder(url.resolve("/").toString())
                .endpoint(url.getPath())
                .build();
        client = McpClient.sync(transport)
                .clientInfo(new Implementation("shoal-interop-java", "0"))
                .requestTimeout(PATIENCE)
                .initializationTimeout(PATIENCE)
                .capabilities(ClientCapabilities.builder().elicitation().build())
                .elicitation(question -> new ElicitResult(
                        ElicitResult.Action.ACCEPT, Map.of("guests", 4, "date", "2026-08-01")))
                .progressConsumer(said -> progress.add(said.progress()))
                .toolsChangeConsumer(toolsChanged::add)
                .loggingConsumer(said -> logged.add(said.data()))
                .build();
    }

    public static void main(String[] arguments) {
        if (arguments.length != 2 || !arguments[0].equals("--url")) {
            System.err.println("usage: Client --url URL");
            System.exit(2);
        }
        var program = new Client(URI.create(arguments[1]));
        program.run();
        System.exit(program.failed == 0 ? 0 : 1);
    }

    private void run() {
        if (!check("connect", () -> client.initialize())) {
            return;
        }
        check("list_tools", this::listTools);
        check("echo", () -> same("text", "héllo", call("echo", Map.of("text", "héllo"))));
        check("call_that_becomes_a_stream", () -> job(1, 50, null));
        check("progress", this::progress);
        check("tools_list_changed", this::toolsListChanged);
        check("logging", this::logging);
        check("elicit_form_accept", () -> same(
                "text",
                "booked Chez Nous for 4 on 2026-08-01",
                call("book_table", Map.of("restaurant", "Chez Nous"))));
        check("tool_error", this::toolError);
        check("call_after_all", () -> job(1, 50, null));
        check("close", () -> client.closeGracefully());
    }

    private void listTools() {
        var names = client.listTools().tools().stream().map(Tool::name).toList();
        if (!names.containsAll(List.of("echo", "long_job", "book_table"))) {
            throw new AssertionError("tools: " + names);
        }
    }

    private void job(int steps, int milliseconds, Object progressToken) {
        var request = CallToolRequest.builder()
                .name("long_job")
                .arguments(Map.of("steps", steps, "interval_ms", milliseconds));
        if (progressToken != null) {
            request.progressToken(progressToken);
        }
        same("text", "done after " + steps + " steps", text(client.callTool(request.build())));
    }

    private void progress() throws InterruptedException {
        job(5, 20, "the-job");
        var seen = new ArrayList<Double>();
        while (seen.size() < 5) {
            seen.add(next("progress", progress));
        }
        // The SDK handles notifications side by side.
        Collections.sort(seen);
        same("progress", List.of(1.0, 2.0, 3.0, 4.0, 5.0), seen);
    }

    /** The notification comes on the standalone stream. */
    private void toolsListChanged() throws InterruptedException {
        for (var times = 0; times < 2; times++) {
            call("toggle_bonus_tool", Map.of());
            next("notifications/tools/list_changed", toolsChanged);
        }
    }

    private void logging() throws InterruptedException {
        call("write_log", Map.of("level", "warning", "message", "watch out"));
        var said = next("notifications/message", logged);
        if (!said.contains("watch out")) {
            throw new AssertionError(said);
        }
    }

    private void toolError() {
        var result = client.callTool(
                CallToolRequest.builder().name("fail").arguments(Map.of("message", "no")).build());
        same("isError", true, result.isError());
    }

    private String call(String tool, Map<String, Object> arguments) {
        return text(client.callTool(CallToolRequest.builder().name(tool).arguments(arguments).build()));
    }

    private static String text(CallToolResult result) {
        return ((TextContent) result.content().get(0)).text();
    }

    private static <T> T next(String what, BlockingQueue<T> queue) throws InterruptedException {
        var next = queue.poll(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
        if (next == null) {
            throw new AssertionError("no " + what + " within " + PATIENCE);
        }
        return next;
    }

    private static void same(String what, Object expected, Object actual) {
        if (!expected.equals(actual)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    private boolean check(String name, Check check) {
        try {
            check.run();
            System.out.println("ok " + name);
            return true;
        } catch (Exception | AssertionError error) {
            failed++;
            System.out.println("FAIL " + name + ": " + String.valueOf(error).replace('\n', '|'));
            return false;
        }
    }

    /** One check; it fails by an exception. */
    private interface Check {
        void run() throws Exception;
    }
}
