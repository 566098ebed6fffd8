// Command tools is a tool server: answers, progress, session state.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	shoal "github.com/shoal-mcp/shoal/workers/go"
)

type reverseArguments struct {
	Text string `json:"text" jsonschema:"what to turn around"`
}

type divideArguments struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type workArguments struct {
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"how long each step takes"`
}

type noArguments struct{}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	worker := shoal.NewWorker("go", shoal.WithVersion("1.0.0"), shoal.WithInstructions("Tools written in Go."))
	shoal.AddTool(worker, "go_reverse", "Returns a text from its end to its beginning.", reverse, shoal.ReadOnly())
	shoal.AddTool(worker, "go_divide", "Divides two numbers.", divide, shoal.ReadOnly())
	shoal.AddTool(worker, "go_work", "Works step by step and says how far it is. It stops when its client cancels it.", work)
	shoal.AddTool(worker, "go_visits", "Counts its calls in this session, whichever worker runs them.", visits)
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func reverse(_ context.Context, _ *shoal.Call, in reverseArguments) (string, error) {
	letters := []rune(in.Text)
	for i, j := 0, len(letters)-1; i < j; i, j = i+1, j-1 {
		letters[i], letters[j] = letters[j], letters[i]
	}
	return string(letters), nil
}

func divide(_ context.Context, _ *shoal.Call, in divideArguments) (float64, error) {
	if in.B == 0 {
		return 0, errors.New("nothing can be divided by zero")
	}
	return in.A / in.B, nil
}

func work(ctx context.Context, call *shoal.Call, in workArguments) (string, error) {
	for step := 1; step <= in.Steps; step++ {
		message := fmt.Sprintf("step %d of %d", step, in.Steps)
		if err := call.Progress(ctx, float64(step), float64(in.Steps), message); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
		}
	}
	return fmt.Sprintf("worked %d steps for %s", in.Steps, call.Principal), nil
}

func visits(ctx context.Context, call *shoal.Call, _ noArguments) (int, error) {
	var count int
	if _, err := call.Session().Get(ctx, "visits", &count); err != nil {
		return 0, err
	}
	count++
	return count, call.Session().Set(ctx, "visits", count)
}
