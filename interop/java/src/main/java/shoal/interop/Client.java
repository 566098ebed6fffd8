package shoal.interop;

import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Drives Shoal's demo pool with the official Java SDK and reports what works.
 *
 * <p>By hand: {@code java -cp 'target/classes:target/dependency/*' shoal.interop.Client --transport HttpClient --url
 * http://127.0.0.1:PORT/mcp --direct URL}
 */
public final class Client {
    private Client() {}

    public static void main(String[] arguments) {
        var options = options(arguments);
        var modes = List.of("--transport", "--drain");
        if (options == null || !options.containsKey("--url") || modes.stream().noneMatch(options::containsKey)) {
            System.err.println("usage: Client --url URL (--transport HttpClient|WebClient [--direct URL] | --drain PROCESS)");
            System.exit(2);
        }
        var url = URI.create(options.get("--url"));
        var report = new Report();
        if (options.containsKey("--drain")) {
            new DrainChecks(url, options.get("--drain"), report).run();
            System.exit(report.failed() == 0 ? 0 : 1);
        }
        var transport = Transport.valueOf(options.get("--transport"));
        new DemoChecks(transport, url, report).run();
        if (options.containsKey("--direct")) {
            var direct = URI.create(options.get("--direct"));
            new LossChecks(transport, url, direct, report).run();
        }
        System.exit(report.failed() == 0 ? 0 : 1);
    }

    private static Map<String, String> options(String[] arguments) {
        if (arguments.length % 2 != 0) {
            return null;
        }
        var options = new HashMap<String, String>();
        for (var at = 0; at < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        return options;
    }
}
