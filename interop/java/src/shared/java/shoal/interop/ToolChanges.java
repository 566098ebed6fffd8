package shoal.interop;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Changes of the demo pool's list of tools. */
public final class ToolChanges {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private ToolChanges() {}

    /** Toggles a tool until a notification arrives. Another client's change may undo this one before a node reads the list. */
    public static void change(Runnable toggle, BlockingQueue<?> notifications) throws InterruptedException {
        var deadline = System.nanoTime() + PATIENCE.toNanos();
        do {
            toggle.run();
            var pause = ThreadLocalRandom.current().nextLong(1_000, 3_000);
            if (notifications.poll(pause, TimeUnit.MILLISECONDS) != null) {
                return;
            }
        } while (System.nanoTime() < deadline);
        throw new AssertionError("no notifications/tools/list_changed within " + PATIENCE);
    }
}
