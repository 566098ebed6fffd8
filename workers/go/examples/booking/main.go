// Command booking has a tool that asks its user before it answers. It works for clients of both eras.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	shoal "github.com/shoal-mcp/shoal/workers/go"
)

type bookArguments struct {
	Restaurant string `json:"restaurant" jsonschema:"where to book"`
}

var form = json.RawMessage(`{
	"type": "object",
	"properties": {
		"guests": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many are coming."},
		"date": {"type": "string", "description": "On which day."}
	},
	"required": ["guests", "date"]
}`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	worker := shoal.NewWorker("go-booking", shoal.WithVersion("1.0.0"))
	shoal.AddTool(worker, "go_book", "Books a table, after the user has filled in a form.", book, shoal.Destructive(false))
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func book(ctx context.Context, call *shoal.Call, in bookArguments) (string, error) {
	question := fmt.Sprintf("When would you like to eat at %s, and with how many?", in.Restaurant)
	answer, err := call.Elicit(ctx, question, form)
	if err != nil {
		return "", err
	}
	if answer.Action != "accept" {
		return "not booked: " + answer.Action, nil
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
