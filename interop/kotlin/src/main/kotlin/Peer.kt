package shoal.interop

import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.plugins.sse.SSE
import io.modelcontextprotocol.kotlin.sdk.client.Client
import io.modelcontextprotocol.kotlin.sdk.client.ClientOptions
import io.modelcontextprotocol.kotlin.sdk.client.StreamableHttpClientTransport
import io.modelcontextprotocol.kotlin.sdk.shared.ProgressCallback
import io.modelcontextprotocol.kotlin.sdk.shared.RequestOptions
import io.modelcontextprotocol.kotlin.sdk.types.CallToolResult
import io.modelcontextprotocol.kotlin.sdk.types.ClientCapabilities
import io.modelcontextprotocol.kotlin.sdk.types.CreateMessageRequest
import io.modelcontextprotocol.kotlin.sdk.types.CreateMessageResult
import io.modelcontextprotocol.kotlin.sdk.types.ElicitResult
import io.modelcontextprotocol.kotlin.sdk.types.Implementation
import io.modelcontextprotocol.kotlin.sdk.types.LoggingMessageNotification
import io.modelcontextprotocol.kotlin.sdk.types.Method
import io.modelcontextprotocol.kotlin.sdk.types.Notification
import io.modelcontextprotocol.kotlin.sdk.types.ResourceUpdatedNotification
import io.modelcontextprotocol.kotlin.sdk.types.Role
import io.modelcontextprotocol.kotlin.sdk.types.TextContent
import io.modelcontextprotocol.kotlin.sdk.types.ToolListChangedNotification
import java.util.concurrent.BlockingQueue
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put

val PATIENCE = 30.seconds

/** A client that answers questions and records notifications. */
class Peer(url: String, private val patience: Duration = PATIENCE) : AutoCloseable {
    val progress = LinkedBlockingQueue<Double>()
    val logged = LinkedBlockingQueue<LoggingMessageNotification>()
    val toolsChanged = LinkedBlockingQueue<Notification>()
    val updated = LinkedBlockingQueue<ResourceUpdatedNotification>()
    val transport: StreamableHttpClientTransport
    val client: Client
    private val http = HttpClient(CIO) {
        install(SSE)
        engine { requestTimeout = patience.inWholeMilliseconds }
    }

    init {
        val capabilities = ClientCapabilities(
            sampling = ClientCapabilities.Sampling(),
            roots = ClientCapabilities.Roots(),
            elicitation = ClientCapabilities.Elicitation(),
        )
        transport = StreamableHttpClientTransport(http, url)
        client = Client(Implementation("shoal-interop-kotlin", "0"), ClientOptions(capabilities))
        client.addRoot("file:///interop", "interop")
        client.setElicitationHandler {
            val form = buildJsonObject {
                put("name", "Ada")
                put("guests", 4)
                put("date", "2026-08-01")
            }
            ElicitResult(ElicitResult.Action.Accept, form)
        }
        client.setRequestHandler<CreateMessageRequest>(Method.Defined.SamplingCreateMessage) { _, _ ->
            CreateMessageResult(Role.Assistant, listOf(TextContent("in short")), "none")
        }
        keep<LoggingMessageNotification>(Method.Defined.NotificationsMessage, logged::add)
        keep<ToolListChangedNotification>(Method.Defined.NotificationsToolsListChanged, toolsChanged::add)
        keep<ResourceUpdatedNotification>(Method.Defined.NotificationsResourcesUpdated, updated::add)
    }

    private fun <T : Notification> keep(method: Method, keep: (T) -> Unit) {
        client.setNotificationHandler<T>(method) {
            keep(it)
            CompletableDeferred(Unit)
        }
    }

    fun connect() = runBlocking { client.connect(transport) }

    fun call(tool: String, arguments: Map<String, Any?>, watched: Boolean = false): String =
        text(result(tool, arguments, watched))

    fun result(tool: String, arguments: Map<String, Any?>, watched: Boolean = false): CallToolResult = runBlocking {
        val onProgress: ProgressCallback? = if (watched) { said -> progress.add(said.progress) } else null
        client.callTool(tool, arguments, options = RequestOptions(onProgress = onProgress, timeout = patience))
    }

    override fun close() {
        runBlocking { client.close() }
        http.close()
    }
}

fun text(result: CallToolResult): String = (result.content[0] as TextContent).text

fun <T : Any> next(what: String, queue: BlockingQueue<T>): T =
    queue.poll(PATIENCE.inWholeSeconds, TimeUnit.SECONDS) ?: throw AssertionError("no $what within $PATIENCE")
