package shoal.interop;

import static shoal.interop.Peer.PATIENCE;
import static shoal.interop.Peer.next;
import static shoal.interop.Report.same;
import static shoal.interop.Report.that;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.spec.McpError;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CompleteRequest;
import io.modelcontextprotocol.spec.McpSchema.GetPromptRequest;
import io.modelcontextprotocol.spec.McpSchema.LoggingLevel;
import io.modelcontextprotocol.spec.McpSchema.Prompt;
import io.modelcontextprotocol.spec.McpSchema.PromptReference;
import io.modelcontextprotocol.spec.McpSchema.ReadResourceRequest;
import io.modelcontextprotocol.spec.McpSchema.Resource;
import io.modelcontextprotocol.spec.McpSchema.ResourceContents;
import io.modelcontextprotocol.spec.McpSchema.ResourceTemplate;
import io.modelcontextprotocol.spec.McpSchema.SubscribeRequest;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.TextResourceContents;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import reactor.core.publisher.Mono;

/** Checks of the demo pool. */
final class DemoChecks {
    private static final String COUNTER = "demo://counter";

    private final Transport transport;
    private final URI url;
    private final Report report;
    private Peer peer;

    DemoChecks(Transport transport, URI url, Report report) {
        this.transport = transport;
        this.url = url;
        this.report = report;
    }

    void run() {
        if (!report.check("connect", this::connect)) {
            return;
        }
        report.check("list_tools", this::listTools);
        report.check("list_resources", this::listResources);
        report.check("list_prompts", this::listPrompts);
        report.check("read_resource", this::readResource);
        report.check("get_prompt", this::getPrompt);
        report.check("completion", this::completion);
        report.check("echo", () -> said("héllo 🌊", peer.call("echo", Map.of("text", "héllo 🌊"))));
        report.check("call_that_becomes_a_stream", () -> job(50));
        report.check("progress", this::progress);
        report.check("elicitation", () -> said(
                "booked Chez Nous for 4 on 2026-08-01", peer.call("book_table", Map.of("restaurant", "Chez Nous"))));
        report.check("sampling", this::sampling);
        report.check("roots", () -> said(Peer.ROOT, peer.call("list_roots", Map.of())));
        report.check("logging", this::logging);
        report.check("tools_list_changed", this::toolsListChanged);
        report.check("resource_updated", this::resourceUpdated);
        report.check("tool_error", this::toolError);
        report.check("unknown_tool", this::unknownTool);
        report.check("call_after_all", () -> job(50));
        report.check("close", () -> {
            that(peer.client.closeGracefully(), "not closed");
            return null;
        });
    }

    private String connect() throws ReflectiveOperationException {
        peer = new Peer(transport, url, PATIENCE);
        return peer.client.initialize().protocolVersion();
    }

    private String listTools() {
        var names = peer.client.listTools().tools().stream().map(Tool::name).toList();
        that(names.containsAll(List.of("echo", "long_job", "book_table")), "tools: " + names);
        return null;
    }

    private String listResources() {
        var uris = peer.client.listResources().resources().stream().map(Resource::uri).toList();
        that(uris.containsAll(List.of("demo://readme", COUNTER)), "resources: " + uris);
        var templates = peer.client.listResourceTemplates().resourceTemplates();
        var patterns = templates.stream().map(ResourceTemplate::uriTemplate).toList();
        that(patterns.contains("demo://greeting/{name}"), "templates: " + patterns);
        return null;
    }

    private String listPrompts() {
        var names = peer.client.listPrompts().prompts().stream().map(Prompt::name).toList();
        that(names.containsAll(List.of("greet", "code_review")), "prompts: " + names);
        return null;
    }

    private String readResource() {
        var contents = peer.client.readResource(new ReadResourceRequest("demo://greeting/Ada")).contents();
        var text = ((TextResourceContents) contents.get(0)).text();
        that(text.contains("Ada"), text);
        return null;
    }

    private String getPrompt() {
        var arguments = Map.<String, Object>of("name", "Ada", "language", "French");
        var prompt = peer.client.getPrompt(new GetPromptRequest("greet", arguments));
        var text = ((TextContent) prompt.messages().get(0).content()).text();
        that(text.contains("Ada") && text.contains("French"), text);
        return null;
    }

    private String completion() {
        var request = new CompleteRequest(
                new PromptReference("greet"), new CompleteRequest.CompleteArgument("language", "G"));
        var values = peer.client.completeCompletion(request).completion().values();
        that(values.contains("German") && !values.contains("French"), "values: " + values);
        return null;
    }

    private String job(int milliseconds) {
        return said("done after 1 steps", peer.call("long_job", Map.of("steps", 1, "interval_ms", milliseconds)));
    }

    private String progress() throws InterruptedException {
        said("done after 5 steps", peer.watch("long_job", Map.of("steps", 5, "interval_ms", 20)));
        var seen = new ArrayList<Double>();
        while (seen.size() < 5) {
            seen.add(next("progress", peer.progress));
        }
        // The SDK handles notifications concurrently.
        Collections.sort(seen);
        same("progress", List.of(1.0, 2.0, 3.0, 4.0, 5.0), seen);
        return null;
    }

    private String sampling() throws InterruptedException {
        said("summary: in short", peer.call("summarize", Map.of("text", "a long story")));
        var asked = next("sampling/createMessage", peer.sampled).messages().toString();
        that(asked.contains("a long story"), asked);
        return null;
    }

    private String logging() throws InterruptedException {
        peer.client.setLoggingLevel(LoggingLevel.INFO);
        peer.call("write_log", Map.of("level", "debug", "message", "too quiet"));
        peer.call("write_log", Map.of("level", "warning", "message", "watch out"));
        var said = next("notifications/message", peer.logged);
        same("level", LoggingLevel.WARNING, said.level());
        that(String.valueOf(said.data()).contains("watch out"), String.valueOf(said.data()));
        return null;
    }

    /** These notifications and the next ones come on the standalone stream. */
    private String toolsListChanged() throws InterruptedException {
        for (var times = 0; times < 2; times++) {
            peer.changeTools();
        }
        return null;
    }

    /** Uses the asynchronous client, because the synchronous one of 0.17 has no handler for this. */
    private String resourceUpdated() throws Exception {
        var updated = new LinkedBlockingQueue<List<ResourceContents>>();
        var client = McpClient.async(transport.to(url))
                .clientInfo(Peer.INFO)
                .requestTimeout(PATIENCE)
                .resourcesUpdateConsumer(contents -> Mono.fromRunnable(() -> updated.add(contents)))
                .build();
        try {
            client.initialize().block();
            client.subscribeResource(new SubscribeRequest(COUNTER)).block();
            peer.call("increment_counter", Map.of());
            same("resource", COUNTER, next("notifications/resources/updated", updated).get(0).uri());
            client.listTools().block();
        } finally {
            client.closeGracefully().block();
        }
        return null;
    }

    private String toolError() {
        var request = CallToolRequest.builder().name("fail").arguments(Map.of("message", "no")).build();
        same("isError", true, peer.client.callTool(request).isError());
        return null;
    }

    private String unknownTool() {
        try {
            peer.call("no_such_tool", Map.of());
        } catch (McpError error) {
            same("code", -32602, error.getJsonRpcError().code());
            return null;
        }
        throw new AssertionError("the call succeeded");
    }

    private static String said(String expected, String actual) {
        same("text", expected, actual);
        return null;
    }
}
