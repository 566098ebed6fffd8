package shoal

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// LogLevel is the severity of a log message.
type LogLevel string

var levels = []LogLevel{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Call is a call, as its tool sees it. Its context ends at its deadline, and when the client cancels it.
type Call struct {
	// ID stays the same when the call is sent again.
	ID [16]byte
	// Principal is the caller, as authenticated by Shoal.
	Principal string
	// SessionID is the client's session; empty without one.
	SessionID string
	// Revision is the client's revision of MCP.
	Revision string
	// ClientInfo is the client's description of itself, JSON; may be nil.
	ClientInfo json.RawMessage
	// Capabilities are the client's declared capabilities.
	Capabilities map[string]json.RawMessage
	// Traceparent and Tracestate are the W3C trace context of the parent span, for a tracer's propagator.
	Traceparent, Tracestate string

	runtime *runtime
	record  *record
	// Allows one session request at a time, to keep the tool's order.
	turn chan struct{}
}

func newCall(_ context.Context, r *runtime, rec *record) *Call {
	caller := rec.call.GetCaller()
	call := &Call{
		ID:          rec.id,
		Principal:   caller.GetPrincipal(),
		SessionID:   rec.session,
		Revision:    caller.GetRevision(),
		ClientInfo:  caller.GetClientInfo(),
		Traceparent: rec.call.GetTraceparent(),
		Tracestate:  rec.call.GetTracestate(),
		runtime:     r,
		record:      rec,
		turn:        make(chan struct{}, 1),
	}
	// Invalid capabilities count as none.
	_ = json.Unmarshal(caller.GetCapabilities(), &call.Capabilities)
	return call
}

// Progress reports progress, if the client asked for it. A zero total or an empty message is omitted.
func (c *Call) Progress(ctx context.Context, progress, total float64, message string) error {
	token := c.record.call.GetProgressToken()
	if token == nil {
		return nil
	}
	params := map[string]any{"progressToken": json.RawMessage(token), "progress": progress}
	if total != 0 {
		params["total"] = total
	}
	if message != "" {
		params["message"] = message
	}
	return c.notify(ctx, "notifications/progress", params)
}

// Log sends a log message to the client, if the client wants this level.
func (c *Call) Log(ctx context.Context, level LogLevel, data any) error {
	wanted := int(c.record.call.GetLogLevel())
	if wanted == 0 || slices.Index(levels, level)+1 < wanted {
		return nil
	}
	return c.notify(ctx, "notifications/message", map[string]any{"level": level, "data": data})
}

// notify sends a notification, and waits while the reader is too far behind. It does nothing after the call's end.
func (c *Call) notify(ctx context.Context, method string, params any) error {
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	said := &workerv1.Event_Notification{Method: method, Params: encoded}
	mu := &c.runtime.mu
	mu.Lock()
	defer mu.Unlock()
	for c.record.outcome == nil && c.record.isFull() {
		room := c.record.room
		mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if c.record.outcome == nil {
		c.record.push(&workerv1.Event{Kind: &workerv1.Event_Notification_{Notification: said}}, len(encoded), 0)
	}
	return nil
}

// Elicited is a user's answer to a form.
type Elicited struct {
	// Action is accept, decline or cancel.
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content"`
}

// Elicit asks the user to fill in a form with this schema.
func (c *Call) Elicit(ctx context.Context, message string, schema any) (*Elicited, error) {
	elicited := &Elicited{}
	params := map[string]any{"message": message, "requestedSchema": schema}
	return elicited, c.ask(ctx, "elicitation/create", params, "elicitation", elicited)
}

// Sample asks the client's model, with the parameters and the result of sampling/createMessage.
func (c *Call) Sample(ctx context.Context, params any) (json.RawMessage, error) {
	var result json.RawMessage
	return result, c.ask(ctx, "sampling/createMessage", params, "sampling", &result)
}

// Roots asks for the client's roots, with the result of roots/list.
func (c *Call) Roots(ctx context.Context) (json.RawMessage, error) {
	var result json.RawMessage
	err := c.ask(ctx, "roots/list", nil, "roots", &result)
	return result, err
}

// ask sends the client a request. The call gives up its slot while it waits.
func (c *Call) ask(ctx context.Context, method string, params any, capability string, result any) error {
	if _, declared := c.Capabilities[capability]; !declared {
		missing := rpcError(codeMissingCapability, "the client does not declare %s", capability)
		missing.Data = json.RawMessage(`{"requiredCapabilities":{"` + capability + `":{}}}`)
		return missing
	}
	said := &workerv1.Event_Ask{Method: method}
	if params != nil {
		encoded, err := json.Marshal(params)
		if err != nil {
			return err
		}
		said.Params = encoded
	}
	r := c.runtime
	r.mu.Lock()
	if r.asking >= r.limits.Asking || r.askingOf[c.Principal] >= r.limits.AskingPerPrincipal {
		r.mu.Unlock()
		return errors.New("too many calls wait for answers of their clients; try again later")
	}
	r.asking++
	r.askingOf[c.Principal]++
	r.leavePlace(c.record)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.asking--
		if r.askingOf[c.Principal]--; r.askingOf[c.Principal] == 0 {
			delete(r.askingOf, c.Principal)
		}
		r.mu.Unlock()
		r.enterPlace(ctx, c.record)
	}()
	return c.answered(ctx, len(said.Params), result, func(ask uint64) *workerv1.Event {
		said.Ask = ask
		return &workerv1.Event{Kind: &workerv1.Event_Ask_{Ask: said}}
	})
}

func (c *Call) answered(ctx context.Context, payload int, result any, kind func(uint64) *workerv1.Event) error {
	c.runtime.mu.Lock()
	ask, answer := c.record.ask(kind, payload)
	c.runtime.mu.Unlock()
	var outcome *typesv1.Outcome
	select {
	case outcome = <-answer:
	case <-ctx.Done():
		c.runtime.mu.Lock()
		c.record.withdrawAsk(ask)
		c.runtime.mu.Unlock()
		return ctx.Err()
	}
	if outcome == nil {
		return context.Canceled
	}
	if failure := outcome.GetError(); failure != nil {
		return &RPCError{Code: failure.GetCode(), Message: failure.GetMessage(), Data: failure.GetData()}
	}
	return json.Unmarshal(outcome.GetResult(), result)
}
