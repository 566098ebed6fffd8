package shoal.interop;

import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.spec.McpClientTransport;
import java.net.URI;
import org.springframework.web.reactive.function.client.WebClient;

/** The transports for Streamable HTTP of the SDK and of Spring. */
enum Transport {
    HttpClient {
        @Override
        McpClientTransport to(URI url) {
            return HttpClientStreamableHttpTransport.builder(url.resolve("/").toString())
                    .endpoint(url.getPath())
                    .build();
        }
    },
    WebClient {
        @Override
        McpClientTransport to(URI url) throws ReflectiveOperationException {
            var builder = Class.forName(webClientTransport())
                    .getMethod("builder", WebClient.Builder.class)
                    .invoke(null, org.springframework.web.reactive.function.client.WebClient.builder()
                            .baseUrl(url.resolve("/").toString()));
            builder.getClass().getMethod("endpoint", String.class).invoke(builder, url.getPath());
            return (McpClientTransport) builder.getClass().getMethod("build").invoke(builder);
        }
    };

    abstract McpClientTransport to(URI url) throws ReflectiveOperationException;

    /** The class moved from the SDK to Spring AI with version 1.0 of the SDK. */
    private static String webClientTransport() {
        var name = "WebClientStreamableHttpTransport";
        var moved = "org.springframework.ai.mcp.client.webflux.transport." + name;
        try {
            Class.forName(moved);
            return moved;
        } catch (ClassNotFoundException earlier) {
            return "io.modelcontextprotocol.client.transport." + name;
        }
    }
}
