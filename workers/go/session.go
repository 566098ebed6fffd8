package shoal

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"

	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

const keyBytes = 128

// SessionState holds small values for later calls of the session, on any worker.
type SessionState struct{ call *Call }

// Session is the state of the caller's session.
func (c *Call) Session() SessionState { return SessionState{c} }

// Get reads a value; false if there is none.
func (s SessionState) Get(ctx context.Context, key string, value any) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	said := &workerv1.Event_State_Get{Key: key}
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	err := s.ask(ctx, &workerv1.Event_State{Request: &workerv1.Event_State_Get_{Get: said}}, len(key), &answer)
	if err != nil || answer.Value == nil {
		return false, err
	}
	return true, json.Unmarshal(answer.Value, value)
}

// Set stores a value, and returns when it is stored as safely as the session.
func (s SessionState) Set(ctx context.Context, key string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.write(ctx, key, encoded)
}

// Remove removes a value.
func (s SessionState) Remove(ctx context.Context, key string) error { return s.write(ctx, key, nil) }

// Keys lists the keys, sorted.
func (s SessionState) Keys(ctx context.Context) ([]string, error) {
	var answer struct {
		Keys []string `json:"keys"`
	}
	said := &workerv1.Event_State{Request: &workerv1.Event_State_Keys_{Keys: &workerv1.Event_State_Keys{}}}
	err := s.ask(ctx, said, 0, &answer)
	return answer.Keys, err
}

func (s SessionState) write(ctx context.Context, key string, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	said := &workerv1.Event_State_Set{Key: key, Value: value, Writing: rand.Uint64() | 1}
	var answer struct{}
	request := &workerv1.Event_State{Request: &workerv1.Event_State_Set_{Set: said}}
	return s.ask(ctx, request, len(key)+len(value), &answer)
}

func (s SessionState) ask(ctx context.Context, said *workerv1.Event_State, payload int, answer any) error {
	select {
	case s.call.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.call.turn }()
	return s.call.answered(ctx, payload, answer, func(ask uint64) *workerv1.Event {
		said.Ask = ask
		return &workerv1.Event{Kind: &workerv1.Event_State_{State: said}}
	})
}

func checkKey(key string) error {
	if len(key) < 1 || len(key) > keyBytes {
		return errors.New("a key of a session's state has 1 to 128 bytes")
	}
	return nil
}
