package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const counter = "asking://counter"

type job struct {
	Steps int    `json:"steps"`
	Label string `json:"label"`
}

// addWork adds the slow tools, and the tools that change resources.
func addWork(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "work", Description: "Takes a while, and says how far it is."}, work)
	mcp.AddTool(server, &mcp.Tool{
		Name: "work_safely", Description: "The same, and it may be called again.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, work)
	var count atomic.Int64
	server.AddResource(&mcp.Resource{URI: counter, Name: "counter"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			contents := &mcp.ResourceContents{URI: counter, Text: fmt.Sprint(count.Load())}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "change", Description: "Changes the resource, and tells those who follow it."},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			changed := count.Add(1)
			if err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: counter}); err != nil {
				return nil, nil, err
			}
			return text("%d", changed)
		})
}

func work(ctx context.Context, request *mcp.CallToolRequest, given job) (*mcp.CallToolResult, any, error) {
	if err := record("started " + given.Label); err != nil {
		return nil, nil, err
	}
	for step := 1; step <= given.Steps; step++ {
		if token := request.Params.GetProgressToken(); token != nil {
			progress := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(step), Total: float64(given.Steps)}
			// The cancellation is handled below.
			_ = request.Session.NotifyProgress(ctx, progress)
		}
		select {
		case <-ctx.Done():
			return nil, nil, record("cancelled " + given.Label)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return text("worked %d steps", given.Steps)
}

// record writes to a file, because a killed process loses its memory.
func record(what string) error {
	file, err := os.OpenFile(os.Getenv("INTEROP_RECORD"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, what)
	return err
}
