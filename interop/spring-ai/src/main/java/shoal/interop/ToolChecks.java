package shoal.interop;

import static shoal.interop.Report.same;
import static shoal.interop.Report.that;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.springframework.ai.chat.model.ToolContext;
import org.springframework.ai.mcp.SyncMcpToolCallbackProvider;
import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.execution.ToolExecutionException;

/** Checks of an application that uses a connection's tools. */
final class ToolChecks {
    private final SyncMcpToolCallbackProvider provider;
    private final Handlers handlers;
    private final Report report;

    ToolChecks(SyncMcpToolCallbackProvider provider, Handlers handlers, Report report) {
        this.provider = provider;
        this.handlers = handlers;
        this.report = report;
    }

    void run() {
        report.check("tool_callbacks", () -> {
            that(names().containsAll(List.of("echo", "long_job", "book_table")), "tools: " + names());
            return null;
        });
        report.check("echo", () -> says("héllo 🌊", call("echo", "{\"text\": \"héllo 🌊\"}")));
        report.check("call_that_becomes_a_stream", this::job);
        report.check("progress", this::progress);
        report.check("elicitation", () -> says(
                "booked Chez Nous for 4 on 2026-08-01", call("book_table", "{\"restaurant\": \"Chez Nous\"}")));
        report.check("sampling", () -> says("summary: in short", call("summarize", "{\"text\": \"a long story\"}")));
        report.check("logging", () -> {
            call("write_log", "{\"level\": \"warning\", \"message\": \"watch out\"}");
            return says("watch out", next("notifications/message", handlers.logged));
        });
        report.check("tools_list_changed", this::toolsListChanged);
        report.check("tool_error", this::toolError);
        report.check("call_after_all", this::job);
    }

    private String job() {
        return says("done after 1 steps", call("long_job", "{\"steps\": 1, \"interval_ms\": 50}"));
    }

    private String progress() throws InterruptedException {
        var context = new ToolContext(Map.of("progressToken", "the-job"));
        says("done after 5 steps", callback("long_job").call("{\"steps\": 5, \"interval_ms\": 20}", context));
        var seen = new TreeSet<Double>();
        while (seen.size() < 5) {
            seen.add(next("progress", handlers.progress));
        }
        same("progress", Set.of(1.0, 2.0, 3.0, 4.0, 5.0), seen);
        return null;
    }

    private String toolsListChanged() throws InterruptedException {
        for (var times = 0; times < 2; times++) {
            ToolChanges.change(() -> call("toggle_bonus_tool", "{}"), handlers.toolsChanged);
        }
        return null;
    }

    private String toolError() {
        try {
            call("fail", "{\"message\": \"it broke\"}");
        } catch (ToolExecutionException error) {
            return says("it broke", error.getMessage());
        }
        throw new AssertionError("the call succeeded");
    }

    private String call(String tool, String arguments) {
        return callback(tool).call(arguments);
    }

    private ToolCallback callback(String tool) {
        return Arrays.stream(provider.getToolCallbacks())
                .filter(callback -> callback.getToolDefinition().name().equals(tool))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no tool " + tool));
    }

    private Set<String> names() {
        return Arrays.stream(provider.getToolCallbacks())
                .map(callback -> callback.getToolDefinition().name())
                .collect(Collectors.toSet());
    }

    private static <T> T next(String what, BlockingQueue<T> queue) throws InterruptedException {
        var next = queue.poll(30, TimeUnit.SECONDS);
        that(next != null, "no " + what);
        return next;
    }

    private static String says(String expected, String actual) {
        that(actual.contains(expected), "expected " + expected + ", got " + actual);
        return null;
    }
}
