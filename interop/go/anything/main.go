// A server on the official Go SDK whose tool takes any value: the SDK writes `true` as that parameter's schema.
package main

import (
	"context"
	"encoding/json"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type some struct {
	Value any `json:"value" jsonschema:"anything"`
}

func anything(_ context.Context, _ *mcp.CallToolRequest, given some) (*mcp.CallToolResult, any, error) {
	text, err := json.Marshal(given.Value)
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "anything", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "anything", Description: "Says what it was given."}, anything)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
