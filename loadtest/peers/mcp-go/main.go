// An echo server on mcp-go, which keeps sessions for revision 2025-11-25.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func echo(_ context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := request.RequireString("text")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	return mcp.NewToolResultText(text), nil
}

func main() {
	tools := server.NewMCPServer("mcp-go", "1.0.0", server.WithToolCapabilities(false))
	tools.AddTool(mcp.NewTool("echo",
		mcp.WithDescription("Gives the text back."),
		mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithString("text", mcp.Required(), mcp.Description("The text to give back.")),
	), echo)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.Handle("/mcp", server.NewStreamableHTTPServer(tools, server.WithStateful(true)))
	fmt.Printf("listening on http://%s/mcp\n", listener.Addr())
	log.Fatal(http.Serve(listener, routes))
}
