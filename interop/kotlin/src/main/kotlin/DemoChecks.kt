package shoal.interop

import io.modelcontextprotocol.kotlin.sdk.types.GetPromptRequest
import io.modelcontextprotocol.kotlin.sdk.types.GetPromptRequestParams
import io.modelcontextprotocol.kotlin.sdk.types.LATEST_PROTOCOL_VERSION
import io.modelcontextprotocol.kotlin.sdk.types.LoggingLevel
import io.modelcontextprotocol.kotlin.sdk.types.McpException
import io.modelcontextprotocol.kotlin.sdk.types.ReadResourceRequest
import io.modelcontextprotocol.kotlin.sdk.types.ReadResourceRequestParams
import io.modelcontextprotocol.kotlin.sdk.types.SubscribeRequest
import io.modelcontextprotocol.kotlin.sdk.types.SubscribeRequestParams
import io.modelcontextprotocol.kotlin.sdk.types.TextContent
import io.modelcontextprotocol.kotlin.sdk.types.TextResourceContents
import kotlinx.coroutines.runBlocking
import shoal.interop.Report.same
import shoal.interop.Report.that

private const val COUNTER = "demo://counter"

/** Checks of the demo pool. */
class DemoChecks(url: String, private val report: Report) {
    private val peer = Peer(url)

    fun run() {
        if (!report.check("connect") { connect() }) return
        check("list_tools") { contains(client().listTools().tools.map { it.name }, "echo", "long_job", "book_table") }
        check("list_resources") { contains(client().listResources().resources.map { it.uri }, "demo://readme", COUNTER) }
        check("list_prompts") { contains(client().listPrompts().prompts.map { it.name }, "greet", "code_review") }
        check("read_resource") {
            val request = ReadResourceRequest(ReadResourceRequestParams("demo://greeting/Ada"))
            contains((client().readResource(request).contents[0] as TextResourceContents).text, "Ada")
        }
        check("get_prompt") {
            val request = GetPromptRequest(GetPromptRequestParams("greet", mapOf("name" to "Ada", "language" to "French")))
            contains((client().getPrompt(request).messages[0].content as TextContent).text, "Ada", "French")
        }
        check("echo") { same("text", "héllo 🌊", peer.call("echo", mapOf("text" to "héllo 🌊"))) }
        check("call_that_becomes_a_stream") { job() }
        check("progress") {
            same("text", "done after 5 steps", peer.call("long_job", mapOf("steps" to 5, "interval_ms" to 20), watched = true))
            same("progress", setOf(1.0, 2.0, 3.0, 4.0, 5.0), (1..5).map { next("progress", peer.progress) }.toSet())
        }
        check("logging") {
            client().setLoggingLevel(LoggingLevel.Info)
            peer.call("write_log", mapOf("level" to "debug", "message" to "too quiet"))
            peer.call("write_log", mapOf("level" to "warning", "message" to "watch out"))
            contains(next("notifications/message", peer.logged).params.data.toString(), "watch out")
        }
        check("tools_list_changed") {
            repeat(2) {
                ToolChanges.change({ peer.call("toggle_bonus_tool", emptyMap()) }, peer.toolsChanged)
            }
        }
        check("resource_updated") {
            client().subscribeResource(SubscribeRequest(SubscribeRequestParams(COUNTER)))
            peer.call("increment_counter", emptyMap())
            same("resource", COUNTER, next("notifications/resources/updated", peer.updated).params.uri)
        }
        check("tool_error") { same("isError", true, peer.result("fail", mapOf("message" to "no")).isError) }
        check("unknown_tool") {
            try {
                peer.call("no_such_tool", emptyMap())
                throw AssertionError("the call succeeded")
            } catch (error: McpException) {
                same("code", -32602, error.code)
            }
        }
        check("call_after_all") { job() }
        check("close") {
            peer.transport.terminateSession()
            peer.close()
        }
    }

    private fun connect(): String {
        peer.connect()
        return "offers $LATEST_PROTOCOL_VERSION"
    }

    private fun client() = peer.client

    private fun job() = same("text", "done after 1 steps", peer.call("long_job", mapOf("steps" to 1, "interval_ms" to 50)))

    private fun check(name: String, check: suspend () -> Unit) = report.check(name) {
        runBlocking { check() }
        null
    }

    private fun contains(found: List<String>, vararg wanted: String) =
        that(found.containsAll(wanted.toList()), "found only $found")

    private fun contains(found: String, vararg wanted: String) = that(wanted.all { it in found }, found)
}
