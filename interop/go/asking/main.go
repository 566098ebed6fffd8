// A server on the official Go SDK whose tools ask mid-call, in every way that the SDK has, work, and change a resource.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type nothing struct{}

type some struct {
	Text string `json:"text"`
}

type guest struct {
	Name string `json:"name"`
}

func text(format string, arguments ...any) (*mcp.CallToolResult, any, error) {
	content := &mcp.TextContent{Text: fmt.Sprintf(format, arguments...)}
	return &mcp.CallToolResult{Content: []mcp.Content{content}}, nil, nil
}

func form() *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "Who are you?", RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"name": map[string]any{"type": "string"}},
		"required":   []string{"name"},
	}}
}

func greeting(answer *mcp.ElicitResult) (*mcp.CallToolResult, any, error) {
	if answer.Action != "accept" {
		return text("nobody: %s", answer.Action)
	}
	return text("hello %v", answer.Content["name"])
}

func echo(_ context.Context, _ *mcp.CallToolRequest, given some) (*mcp.CallToolResult, any, error) {
	return text("%s", given.Text)
}

func greet(ctx context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	answer, err := request.Session.Elicit(ctx, form())
	if err != nil {
		return nil, nil, err
	}
	return greeting(answer)
}

func summarize(ctx context.Context, request *mcp.CallToolRequest, given some) (*mcp.CallToolResult, any, error) {
	message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: given.Text}}
	answer, err := request.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
		Messages:  []*mcp.SamplingMessage{message},
		MaxTokens: 100,
	})
	if err != nil {
		return nil, nil, err
	}
	return text("summary: %s", answer.Content.(*mcp.TextContent).Text)
}

func listRoots(ctx context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	answer, err := request.Session.ListRoots(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	var roots []string
	for _, root := range answer.Roots {
		roots = append(roots, root.URI)
	}
	return text("%s", strings.Join(roots, "\n"))
}

func greetRequired(_ context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
	if answer, ok := request.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
		return greeting(answer)
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{"name": form()},
		RequestState:  "asked",
	}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "asking-go", Version: "1.0.0"}, &mcp.ServerOptions{
		// The SDK keeps the subscribers.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(server, &mcp.Tool{
		Name: "echo", Description: "Gives the text back.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, echo)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Asks for a name by a request of the server."}, greet)
	mcp.AddTool(server, &mcp.Tool{
		Name: "summarize", Description: "Samples from the client's model by a request of the server.",
	}, summarize)
	mcp.AddTool(server, &mcp.Tool{
		Name: "list_roots", Description: "Lists the client's roots by a request of the server.",
	}, listRoots)
	mcp.AddTool(server, &mcp.Tool{Name: "greet_required", Description: "Asks for a name by its result."}, greetRequired)
	addWork(server)
	if len(os.Args) == 3 && (os.Args[1] == "--http" || os.Args[1] == "--resumable-http") {
		options := &mcp.StreamableHTTPOptions{}
		if os.Args[1] == "--resumable-http" {
			options.EventStore = mcp.NewMemoryEventStore(nil)
		}
		handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
		log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[2], handler))
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
