package shoal.interop

import java.net.URI
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executors
import java.util.concurrent.Future
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlin.time.toJavaDuration
import shoal.interop.CuttingProxy.Cut
import shoal.interop.Report.that

/** When a call counts as lost; without a loss it takes 1.5 seconds. */
private val GIVES_UP = 8.seconds

/**
 * Checks that may depend on the SDK: compared with a server of the Go SDK that keeps its events, nothing may be worse
 * through Shoal.
 */
class ComparedChecks(private val shoal: URI, private val direct: URI, private val report: Report) {
    private val threads = Executors.newCachedThreadPool()

    fun run() {
        // Concurrently, because unsupported checks time out.
        val found = linkedMapOf<String, Future<String>>()
        for (how in Cut.entries) {
            found["stream_${how.name.lowercase()}"] = compare { url, patience -> loseConnections(url, how, patience) }
        }
        val restaurant = mapOf("restaurant" to "Chez Nous")
        val story = mapOf("text" to "a long story")
        found["elicitation"] = ask(Call("greet"), Call("book_table", restaurant))
        found["sampling"] = ask(Call("summarize", story), Call("summarize", story))
        found["roots"] = ask(Call("list_roots"), Call("list_roots"))
        for ((name, comparison) in found) {
            report.check(name) { comparison.get() }
        }
        threads.shutdownNow()
    }

    /** Calls tools that ask the client. */
    private fun ask(ofDirect: Call, ofShoal: Call) = compare { url, patience ->
        val call = if (url == direct) ofDirect else ofShoal
        Peer(url.toString(), patience).use { peer ->
            peer.connect()
            Seen(runCatching { peer.call(call.tool, call.arguments) }.isSuccess, false)
        }
    }

    /** Scenarios that succeed directly get all the time that they need through Shoal. */
    private fun compare(scenario: (URI, Duration) -> Seen): Future<String> = threads.submit<String> {
        val directly = scenario(direct, GIVES_UP)
        val through = scenario(shoal, if (directly.answered) PATIENCE else GIVES_UP)
        that(through.answered || !directly.answered, "only directly: $directly; $through")
        "directly $directly; through Shoal $through"
    }

    /** Cuts the streams of a client while its call runs. */
    private fun loseConnections(server: URI, how: Cut, patience: Duration): Seen {
        val work = if (server == direct) Call("work", mapOf("steps" to 30, "label" to "loss"))
        else Call("long_job", mapOf("steps" to 5, "interval_ms" to 300))
        return CuttingProxy(server).use { proxy ->
            Peer(proxy.url().toString(), patience).use { peer ->
                peer.connect()
                val call = CompletableFuture.supplyAsync({ peer.call(work.tool, work.arguments, watched = true) }, threads)
                that(proxy.passesProgress(PATIENCE.toJavaDuration()), "no progress")
                val before = proxy.heads().size
                proxy.cut(how)
                val answered = call.handle { _, error -> error == null }.get()
                val resumed = proxy.heads().drop(before).any { it.startsWith("GET ") && "last-event-id:" in it.lowercase() }
                peer.call("echo", mapOf("text" to "hello"))
                Seen(answered, resumed)
            }
        }
    }

    private class Call(val tool: String, val arguments: Map<String, Any?> = emptyMap())

    private class Seen(val answered: Boolean, val resumed: Boolean) {
        override fun toString() = (if (answered) "answered" else "not answered") + (if (resumed) " by resuming" else "")
    }
}
