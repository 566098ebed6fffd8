package shoal.interop;

import io.modelcontextprotocol.json.McpJsonMapper;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import io.modelcontextprotocol.spec.McpSchema.ElicitRequest;
import io.modelcontextprotocol.spec.McpSchema.ServerCapabilities;
import io.modelcontextprotocol.spec.McpSchema.Tool;
import java.util.Map;

/** A stdio server on the official Java SDK. */
public final class Server {
    private static final String TEXT = """
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            """;
    private static final String NOTHING = """
            {"type": "object", "properties": {}}
            """;

    private Server() {}

    public static void main(String[] arguments) throws ReflectiveOperationException {
        var mapper = mapper();
        var echo = Tool.builder().name("echo").description("Says it again.").inputSchema(mapper, TEXT).build();
        var ask = Tool.builder().name("ask").description("Asks the user.").inputSchema(mapper, NOTHING).build();
        McpServer.sync(new StdioServerTransportProvider(mapper))
                .serverInfo("java", "1")
                .capabilities(ServerCapabilities.builder().tools(true).build())
                .toolCall(echo, (exchange, request) -> said(String.valueOf(request.arguments().get("text"))))
                .toolCall(ask, (exchange, request) -> {
                    var form = Map.<String, Object>of("type", "object", "properties", Map.of());
                    var answer = exchange.createElicitation(new ElicitRequest("Agreed?", form));
                    return said(answer.action().name());
                })
                .build();
    }

    /** The class has another name from 1.0 on. */
    private static McpJsonMapper mapper() throws ReflectiveOperationException {
        try {
            var defaults = Class.forName("io.modelcontextprotocol.json.McpJsonDefaults");
            return (McpJsonMapper) defaults.getMethod("getMapper").invoke(null);
        } catch (ClassNotFoundException earlier) {
            return (McpJsonMapper) McpJsonMapper.class.getMethod("getDefault").invoke(null);
        }
    }

    private static CallToolResult said(String text) {
        return CallToolResult.builder().addTextContent(text).isError(false).build();
    }
}
