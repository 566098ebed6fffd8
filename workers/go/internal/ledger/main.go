// Command ledger records each run of its tools, for `interop/composed`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	shoal "github.com/shoal-mcp/shoal/workers/go"
)

const poll = 10 * time.Millisecond

type entry struct {
	Key   int64 `json:"key" jsonschema:"what the run is written down as"`
	Gated bool  `json:"gated,omitempty" jsonschema:"whether it goes on only when the gate is open"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	worker := shoal.NewWorker("go")
	shoal.AddTool(worker, "look", "Is safe to repeat.", noted("looked"), shoal.ReadOnly())
	shoal.AddTool(worker, "book", "Must not run twice.", noted("booked"))
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func noted(verb string) func(context.Context, *shoal.Call, entry) (string, error) {
	return func(ctx context.Context, _ *shoal.Call, in entry) (string, error) {
		if err := writeDown(in.Key); err != nil {
			return "", err
		}
		if in.Gated {
			if err := gate(ctx); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s %d", verb, in.Key), nil
	}
}

// writeDown appends the key and the process to the file LEDGER.
func writeDown(key int64) error {
	ledger, err := os.OpenFile(os.Getenv("LEDGER"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(ledger, "%d %d %d\n", key, os.Getpid(), os.Getppid())
	if closed := ledger.Close(); err == nil {
		err = closed
	}
	return err
}

// gate waits until the file GATE exists.
func gate(ctx context.Context) error {
	for {
		if _, err := os.Stat(os.Getenv("GATE")); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}
