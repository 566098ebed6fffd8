package shoal.interop

import java.net.URI
import kotlin.system.exitProcess

/** Drives Shoal's demo pool with the official Kotlin SDK and reports what works. */
fun main(arguments: Array<String>) {
    val options = arguments.toList().chunked(2).filter { it.size == 2 }.associate { (name, value) -> name to value }
    val url = options["--url"]
    if (url == null) {
        System.err.println("usage: MainKt --url URL [--direct URL]")
        exitProcess(2)
    }
    val report = Report()
    DemoChecks(url, report).run()
    options["--direct"]?.let { ComparedChecks(URI(url), URI(it), report).run() }
    exitProcess(if (report.failed() == 0) 0 else 1)
}
