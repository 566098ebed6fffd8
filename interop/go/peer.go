package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	sampled      = "a sampled text"
	acknowledged = "notifications/subscriptions/acknowledged"
	arrivalTime  = 10 * time.Second
)

var rootURIs = []string{"file:///workspace/one", "file:///workspace/two"}

// peer is the client's side of a conversation: it gives scripted answers, and records all questions and notifications.
type peer struct {
	mu         sync.Mutex
	formAnswer *mcp.ElicitResult
	urlAnswer  *mcp.ElicitResult
	forms      []*mcp.ElicitParams
	urls       []*mcp.ElicitParams
	samples    []*mcp.CreateMessageParams
	logs       []*mcp.LoggingMessageParams
	progress   []*mcp.ProgressNotificationParams
	updated    []string
	toolLists  int
	acks       int
}

// client makes an SDK client with the peer's handlers.
func (p *peer) client() *mcp.Client {
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			RootsV2: &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{
				Form: &mcp.FormElicitationCapabilities{},
				URL:  &mcp.URLElicitationCapabilities{},
			},
		},
		ElicitationHandler:          p.elicit,
		CreateMessageHandler:        p.sample,
		LoggingMessageHandler:       p.log,
		ProgressNotificationHandler: p.report,
		ResourceUpdatedHandler:      p.update,
		ToolListChangedHandler:      p.toolsChanged,
	})
	for _, uri := range rootURIs {
		client.AddRoots(&mcp.Root{URI: uri})
	}
	client.AddReceivingMiddleware(p.countAcks)
	return client
}

func (p *peer) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.Params.Mode == "url" {
		p.urls = append(p.urls, req.Params)
		return p.urlAnswer, nil
	}
	p.forms = append(p.forms, req.Params)
	return p.formAnswer, nil
}

func (p *peer) sample(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, req.Params)
	return &mcp.CreateMessageResult{
		Role:    "assistant",
		Model:   "scripted",
		Content: &mcp.TextContent{Text: sampled},
	}, nil
}

func (p *peer) log(_ context.Context, req *mcp.LoggingMessageRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs = append(p.logs, req.Params)
}

func (p *peer) report(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = append(p.progress, req.Params)
}

func (p *peer) update(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updated = append(p.updated, req.Params.URI)
}

func (p *peer) toolsChanged(context.Context, *mcp.ToolListChangedRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toolLists++
}

// countAcks counts acknowledged subscriptions, which the SDK does not report.
func (p *peer) countAcks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == acknowledged {
			p.mu.Lock()
			p.acks++
			p.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// with runs fn with exclusive access to the peer.
func (p *peer) with(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}

// wait returns when a notification has made arrived true.
func (p *peer) wait(ctx context.Context, what string, arrived func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, arrivalTime)
	defer cancel()
	for {
		var done bool
		p.with(func() { done = arrived() })
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not arrive within %v", what, arrivalTime)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
