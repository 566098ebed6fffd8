package shoal.interop;

import io.modelcontextprotocol.spec.McpSchema.CreateMessageRequest;
import io.modelcontextprotocol.spec.McpSchema.CreateMessageResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitRequest;
import io.modelcontextprotocol.spec.McpSchema.ElicitResult;
import io.modelcontextprotocol.spec.McpSchema.LoggingMessageNotification;
import io.modelcontextprotocol.spec.McpSchema.ProgressNotification;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.ai.mcp.annotation.McpElicitation;
import org.springframework.ai.mcp.annotation.McpLogging;
import org.springframework.ai.mcp.annotation.McpProgress;
import org.springframework.ai.mcp.annotation.McpSampling;
import org.springframework.ai.mcp.annotation.McpToolListChanged;
import org.springframework.stereotype.Component;

/** Answers the connection's questions, and records notifications. */
@Component
public class Handlers {
    final BlockingQueue<Double> progress = new LinkedBlockingQueue<>();
    final BlockingQueue<String> logged = new LinkedBlockingQueue<>();
    final BlockingQueue<List<Tool>> toolsChanged = new LinkedBlockingQueue<>();

    @McpElicitation(clients = "shoal")
    public ElicitResult elicit(ElicitRequest question) {
        return new ElicitResult(ElicitResult.Action.ACCEPT, Map.of("guests", 4, "date", "2026-08-01"));
    }

    @McpSampling(clients = "shoal")
    public CreateMessageResult sample(CreateMessageRequest request) {
        return CreateMessageResult.builder().message("in short").model("none").build();
    }

    @McpProgress(clients = "shoal")
    public void onProgress(ProgressNotification said) {
        progress.add(said.progress());
    }

    @McpLogging(clients = "shoal")
    public void onLog(LoggingMessageNotification said) {
        logged.add(String.valueOf(said.data()));
    }

    @McpToolListChanged(clients = "shoal")
    public void onTools(List<Tool> tools) {
        toolsChanged.add(tools);
    }
}
