// Command asking has the tools of every asking server of interop/.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	shoal "github.com/shoal-mcp/shoal/workers/go"
)

type nothing struct{}

type some struct {
	Text string `json:"text"`
}

type job struct {
	Steps int    `json:"steps"`
	Label string `json:"label"`
}

var form = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	worker := shoal.NewWorker("asking")
	shoal.AddTool(worker, "echo", "Gives the text back.", echo, shoal.ReadOnly())
	shoal.AddTool(worker, "greet", "Asks for a name.", greet)
	shoal.AddTool(worker, "summarize", "Samples from the client's model.", summarize)
	shoal.AddTool(worker, "list_roots", "Lists the client's roots.", listRoots)
	shoal.AddTool(worker, "work", "Takes a while, and says how far it is.", work)
	shoal.AddTool(worker, "work_safely", "The same, and it may be called again.", work, shoal.ReadOnly())
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func echo(_ context.Context, _ *shoal.Call, in some) (string, error) { return in.Text, nil }

func greet(ctx context.Context, call *shoal.Call, _ nothing) (string, error) {
	answer, err := call.Elicit(ctx, "Who are you?", form)
	if err != nil {
		return "", err
	}
	if answer.Action != "accept" {
		return "nobody: " + answer.Action, nil
	}
	var guest struct {
		Name string `json:"name"`
	}
	err = json.Unmarshal(answer.Content, &guest)
	return "hello " + guest.Name, err
}

func summarize(ctx context.Context, call *shoal.Call, in some) (string, error) {
	content := map[string]string{"type": "text", "text": in.Text}
	message := map[string]any{"role": "user", "content": content}
	answer, err := call.Sample(ctx, map[string]any{"messages": []any{message}, "maxTokens": 100})
	if err != nil {
		return "", err
	}
	var sampled struct {
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	err = json.Unmarshal(answer, &sampled)
	return "summary: " + sampled.Content.Text, err
}

func listRoots(ctx context.Context, call *shoal.Call, _ nothing) (string, error) {
	answer, err := call.Roots(ctx)
	if err != nil {
		return "", err
	}
	var listed struct {
		Roots []struct {
			URI string `json:"uri"`
		} `json:"roots"`
	}
	err = json.Unmarshal(answer, &listed)
	var uris []string
	for _, root := range listed.Roots {
		uris = append(uris, root.URI)
	}
	return strings.Join(uris, "\n"), err
}

func work(ctx context.Context, call *shoal.Call, in job) (string, error) {
	if err := record("started " + in.Label); err != nil {
		return "", err
	}
	for step := 1; step <= in.Steps; step++ {
		if err := call.Progress(ctx, float64(step), float64(in.Steps), ""); err != nil && ctx.Err() == nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", record("cancelled " + in.Label)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Sprintf("worked %d steps", in.Steps), nil
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
