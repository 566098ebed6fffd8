package shoal.interop;

import java.util.Map;
import org.springframework.ai.mcp.SyncMcpToolCallbackProvider;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;

/**
 * Drives Shoal's demo pool with Spring AI, as an application has it: by properties, annotated handlers and tool callbacks.
 *
 * <p>By hand: {@code java -cp 'target/classes:target/dependency/*' shoal.interop.Application --url
 * http://127.0.0.1:PORT/mcp}
 */
@SpringBootApplication
public class Application {
    public static void main(String[] arguments) {
        if (arguments.length != 2 || !arguments[0].equals("--url")) {
            System.err.println("usage: Application --url URL");
            System.exit(2);
        }
        var url = java.net.URI.create(arguments[1]);
        var connection = "spring.ai.mcp.client.streamable-http.connections.shoal.";
        var report = new Report();
        var application = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(Map.of(
                        connection + "url", url.resolve("/").toString(),
                        connection + "endpoint", url.getPath(),
                        "spring.ai.mcp.client.request-timeout", "30s",
                        "spring.main.banner-mode", "off",
                        "logging.level.root", "off"));
        report.check("start", () -> {
            var context = application.run();
            new ToolChecks(context.getBean(SyncMcpToolCallbackProvider.class), context.getBean(Handlers.class), report)
                    .run();
            report.check("close", () -> {
                context.close();
                return null;
            });
            return null;
        });
        System.exit(report.failed() == 0 ? 0 : 1);
    }
}
