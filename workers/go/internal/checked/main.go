// Command checked has the tools that `shoal worker-check` expects.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	shoal "github.com/shoal-mcp/shoal/workers/go"
)

type text struct {
	Text string `json:"text"`
}

type message struct {
	Message string `json:"message"`
}

type job struct {
	Steps      int `json:"steps"`
	IntervalMS int `json:"interval_ms"`
}

type logged struct {
	Level   shoal.LogLevel `json:"level"`
	Message string         `json:"message"`
}

type restaurant struct {
	Restaurant string `json:"restaurant"`
}

type kept struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

type nothing struct{}

var form = json.RawMessage(`{"type":"object","properties":{"guests":{"type":"integer"},"date":{"type":"string"}},
	"required":["guests","date"]}`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	worker := shoal.NewWorker("checked")
	addTools(worker)
	if err := worker.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func addTools(worker *shoal.Worker) {
	var counter atomic.Int64
	shoal.AddTool(worker, "echo", "", func(_ context.Context, _ *shoal.Call, in text) (string, error) {
		return in.Text, nil
	}, shoal.ReadOnly())
	shoal.AddTool(worker, "fail", "", func(_ context.Context, _ *shoal.Call, in message) (string, error) {
		return "", errors.New(in.Message)
	}, shoal.ReadOnly())
	shoal.AddTool(worker, "long_job", "", longJob)
	shoal.AddTool(worker, "write_log", "", func(ctx context.Context, call *shoal.Call, in logged) (string, error) {
		return "written", call.Log(ctx, in.Level, in.Message)
	})
	shoal.AddTool(worker, "increment_counter", "", func(context.Context, *shoal.Call, nothing) (string, error) {
		return strconv.FormatInt(counter.Add(1), 10), nil
	})
	shoal.AddTool(worker, "book_table", "", bookTable)
	shoal.AddTool(worker, "remember", "", func(ctx context.Context, call *shoal.Call, in kept) (string, error) {
		return "remembered " + in.Key, call.Session().Set(ctx, in.Key, in.Value)
	})
	shoal.AddTool(worker, "recall", "", func(ctx context.Context, call *shoal.Call, in kept) (string, error) {
		var value string
		_, err := call.Session().Get(ctx, in.Key, &value)
		return value, err
	}, shoal.ReadOnly())
}

func longJob(ctx context.Context, call *shoal.Call, in job) (string, error) {
	for step := 1; step <= in.Steps; step++ {
		if err := call.Progress(ctx, float64(step), float64(in.Steps), ""); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Duration(in.IntervalMS) * time.Millisecond):
		}
	}
	return fmt.Sprintf("done after %d steps", in.Steps), nil
}

func bookTable(ctx context.Context, call *shoal.Call, in restaurant) (string, error) {
	answer, err := call.Elicit(ctx, "When, and with how many?", form)
	if err != nil {
		return "", err
	}
	var booking struct {
		Guests int    `json:"guests"`
		Date   string `json:"date"`
	}
	if err := json.Unmarshal(answer.Content, &booking); err != nil {
		return "", err
	}
	return fmt.Sprintf("booked %s for %d on %s", in.Restaurant, booking.Guests, booking.Date), nil
}
