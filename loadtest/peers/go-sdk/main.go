// An echo server on the official Go SDK: with sessions for revision 2025-11-25, or with -stateless for 2026-07-28, which
// the SDK serves without them only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echoArguments struct {
	Text string `json:"text" jsonschema:"the text to give back"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, arguments echoArguments) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: arguments.Text}}}, nil, nil
}

func main() {
	stateless := flag.Bool("stateless", false, "keep no sessions")
	flag.Parse()

	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "echo",
		Description: "Gives the text back.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, echo)
	handler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: *stateless},
	)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle("/mcp", handler)
	fmt.Printf("listening on http://%s/mcp\n", listener.Addr())
	log.Fatal(http.Serve(listener, routes))
}
