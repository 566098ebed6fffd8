package shoal.interop;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ClientCapabilities;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageRequest;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import io.modelcontextprotocol.spec.McpSchema.Implementation;
import io.modelcontextprotocol.spec.McpSchema.LoggingMessageNotification;
import io.modelcontextprotocol.spec.McpSchema.Root;
import io.modelcontextprotocol.spec.McpSchema.TextContent;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A client that answers questions and records notifications. */
final class Peer implements AutoCloseable {
    static final Duration PATIENCE = Duration.ofSeconds(30);
    static final Implementation INFO = new Implementation("shoal-interop-java", "0");
    static final String ROOT = "file:///interop";

    final BlockingQueue<Double> progress = new LinkedBlockingQueue<>();
    final BlockingQueue<List<Tool>> toolsChanged = new LinkedBlockingQueue<>();
    final BlockingQueue<LoggingMessageNotification> logged = new LinkedBlockingQueue<>();
    final BlockingQueue<CreateMessageRequest> sampled = new LinkedBlockingQueue<>();
    final McpSyncClient client;

    Peer(Transport transport, URI url, Duration patience) throws ReflectiveOperationException {
        client = McpClient.sync(transport.to(url))
                .clientInfo(INFO)
                .requestTimeout(patience)
                .initializationTimeout(PATIENCE)
                .capabilities(ClientCapabilities.builder().elicitation().sampling().roots(true).build())
                .roots(new Root(ROOT, "interop"))
                .elicitation(question -> new ElicitResult(
                        ElicitResult.Action.ACCEPT, Map.of("guests", 4, "date", "2026-08-01")))
                .sampling(this::sample)
                .progressConsumer(said -> progress.add(said.progress()))
                .toolsChangeConsumer(toolsChanged::add)
                .loggingConsumer(logged::add)
                .build();
    }

    private CreateMessageResult sample(CreateMessageRequest request) {
        sampled.add(request);
        return CreateMessageResult.builder().message("in short").model("none").build();
    }

    String call(String tool, Map<String, Object> arguments) {
        return text(client.callTool(CallToolRequest.builder().name(tool).arguments(arguments).build()));
    }

    /** The same with a progress token. */
    String watch(String tool, Map<String, Object> arguments) {
        var request = CallToolRequest.builder().name(tool).arguments(arguments).progressToken("the-job");
        return text(client.callTool(request.build()));
    }

    void changeTools() throws InterruptedException {
        ToolChanges.change(() -> call("toggle_bonus_tool", Map.of()), toolsChanged);
    }

    static String text(CallToolResult result) {
        return ((TextContent) result.content().get(0)).text();
    }

    static <T> T next(String what, BlockingQueue<T> queue) throws InterruptedException {
        var next = queue.poll(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
        if (next == null) {
            throw new AssertionError("no " + what + " within " + PATIENCE);
        }
        return next;
    }

    @Override
    public void close() {
        client.closeGracefully();
    }
}
