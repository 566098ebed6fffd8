package shoal.interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/** Forwards bytes to a server until it is told to cut streams. Records the head of each request. */
public final class CuttingProxy implements AutoCloseable {
    private static final Pattern SESSION = Pattern.compile("(?i)mcp-session-id: *(\\S+)");
    private static final Pattern METHOD = Pattern.compile("POST |GET |DELETE ");
    private static final byte[] LAST_CHUNK = "0\r\n\r\n".getBytes(StandardCharsets.US_ASCII);

    /** How a stream ends before its answer. */
    public enum Cut {
        /** The connection breaks, as when a process or a machine dies. */
        BROKEN,
        /** The response ends normally, as when a server or a proxy shuts down in order. */
        ENDED
    }

    private final URI server;
    private final ServerSocket listener;
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();
    private final List<String> heads = new CopyOnWriteArrayList<>();
    private final Semaphore events = new Semaphore(0);
    private volatile String session;

    public CuttingProxy(URI server) throws IOException {
        this.server = server;
        listener = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
        daemon(this::accept);
    }

    public URI url() {
        return URI.create("http://127.0.0.1:" + listener.getLocalPort() + server.getPath());
    }

    /** @return the id of the last opened session */
    public String session() {
        return session;
    }

    /** @return the heads of all requests */
    public List<String> heads() {
        return List.copyOf(heads);
    }

    /** Waits until an event of a call's progress has passed. */
    public boolean passesProgress(Duration patience) throws InterruptedException {
        return events.tryAcquire(patience.toMillis(), TimeUnit.MILLISECONDS);
    }

    /**
     * Cuts the connections whose answer is a stream. Others stay open, because a client that resumes on a closing
     * connection of its pool may fail.
     */
    public void cut(Cut how) {
        for (var connection : List.copyOf(open)) {
            if (connection.streams) {
                connection.cut(how);
            }
        }
    }

    private void accept() {
        try {
            while (true) {
                var client = listener.accept();
                var connection = new Connection(client, new Socket(server.getHost(), server.getPort()));
                open.add(connection);
                daemon(connection::requests);
                daemon(connection::responses);
            }
        } catch (IOException closed) {
            List.copyOf(open).forEach(connection -> connection.cut(Cut.BROKEN));
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }

    private static String head(String text) {
        return text.split("\r\n\r\n", 2)[0];
    }

    private static void daemon(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    private final class Connection {
        private final Socket client;
        private final Socket upstream;
        private volatile boolean streams;

        Connection(Socket client, Socket upstream) {
            this.client = client;
            this.upstream = upstream;
        }

        private void requests() {
            pass(client, upstream, text -> {
                if (METHOD.matcher(text).lookingAt()) {
                    heads.add(head(text));
                }
            });
        }

        private void responses() {
            pass(upstream, client, text -> {
                if (text.startsWith("HTTP/1.1 ")) {
                    streams = head(text).contains("text/event-stream");
                    var opened = SESSION.matcher(head(text));
                    if (opened.find()) {
                        session = opened.group(1);
                    }
                }
            });
        }

        private void pass(Socket from, Socket to, Consumer<String> seen) {
            var buffer = new byte[64 * 1024];
            try {
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream();
                for (int read; (read = in.read(buffer)) > 0; ) {
                    var text = new String(buffer, 0, read, StandardCharsets.ISO_8859_1);
                    synchronized (this) {
                        seen.accept(text);
                        out.write(buffer, 0, read);
                    }
                    if (to == client && text.contains("notifications/progress")) {
                        events.release();
                    }
                }
            } catch (IOException broken) {
                // Ends the other direction too.
            }
            cut(Cut.BROKEN);
        }

        private synchronized void cut(Cut how) {
            if (!open.remove(this)) {
                return;
            }
            try (client; upstream) {
                if (how == Cut.ENDED && streams) {
                    client.getOutputStream().write(LAST_CHUNK);
                }
            } catch (IOException gone) {
                // Closed in any case.
            }
        }
    }
}
