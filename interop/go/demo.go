package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	counter          = "demo://counter"
	resourceNotFound = -32002
	// quietTime is how long to listen for a message that must not come.
	quietTime = 300 * time.Millisecond
)

// demo holds the checks against Shoal's demo pool.
type demo struct {
	session *mcp.ClientSession
	peer    *peer
	modern  bool
}

// checks are the checks in the order in which they run.
func (d *demo) checks() []check {
	return []check{
		{"list_tools", d.listTools},
		{"echo", d.echo},
		{"structured_content", d.structuredContent},
		{"progress", d.progress},
		{"sampling", d.sampling},
		{"elicit_form_accept", d.elicitFormAccept},
		{"elicit_form_decline", d.elicitFormDecline},
		{"elicit_form_cancel", d.elicitFormCancel},
		{"elicit_url", d.elicitURL},
		{"roots", d.roots},
		{"list_resources", d.listResources},
		{"read_resource", d.readResource},
		{"read_blob", d.readBlob},
		{"read_template", d.readTemplate},
		{"unknown_resource", d.unknownResource},
		{"subscription", d.subscription},
		{"unsubscribed", d.unsubscribed},
		{"tools_list_changed", d.toolsListChanged},
		{"list_prompts", d.listPrompts},
		{"get_prompt", d.getPrompt},
		{"completion", d.completion},
		{"logging", d.logging},
		{"cancel", d.cancel},
		{"tool_error", d.toolError},
		{"bad_arguments", d.badArguments},
		{"unknown_tool", d.unknownTool},
		{"concurrent_calls", d.concurrentCalls},
		{"ping", d.ping},
	}
}

func (d *demo) listTools(ctx context.Context) error {
	names, err := d.toolNames(ctx)
	if err != nil {
		return err
	}
	return includes("tools", names, "echo", "add", "long_job", "book_table", "connect_account", "summarize",
		"list_roots", "increment_counter", "toggle_bonus_tool", "write_log", "fail")
}

func (d *demo) echo(ctx context.Context) error {
	return d.textIs(ctx, "echo", args{"text": "héllo 🌊"}, "héllo 🌊")
}

func (d *demo) structuredContent(ctx context.Context) error {
	result, err := d.call(ctx, "add", args{"a": 2, "b": 40}, nil)
	if err != nil {
		return err
	}
	return equal("structured content", result.StructuredContent, map[string]any{"sum": 42.0})
}

func (d *demo) progress(ctx context.Context) error {
	d.peer.with(func() { d.peer.progress = nil })
	params := &mcp.CallToolParams{Name: "long_job", Arguments: args{"steps": 5, "interval_ms": 20}}
	params.SetProgressToken("the-job")
	result, err := d.session.CallTool(ctx, params)
	if err != nil {
		return err
	}
	if err := equal("text", text(result), "done after 5 steps"); err != nil {
		return err
	}
	// The SDK handles notifications and results concurrently, so the last notification may come late.
	all := func() bool { return len(d.peer.progress) >= 5 }
	if err := d.peer.wait(ctx, "all progress", all); err != nil {
		return err
	}
	var seen []float64
	d.peer.with(func() {
		for _, progress := range d.peer.progress {
			seen = append(seen, progress.Progress)
		}
	})
	return equal("progress", seen, []float64{1, 2, 3, 4, 5})
}

func (d *demo) sampling(ctx context.Context) error {
	if err := d.textIs(ctx, "summarize", args{"text": "a long story"}, "summary: "+sampled); err != nil {
		return err
	}
	asked, err := json.Marshal(d.peer.samples)
	if err != nil {
		return err
	}
	return contains(string(asked), "a long story")
}

func (d *demo) elicitFormAccept(ctx context.Context) error {
	content := map[string]any{"guests": 4, "date": "2026-08-01"}
	d.peer.formAnswer = &mcp.ElicitResult{Action: "accept", Content: content}
	booked := "booked Chez Nous for 4 on 2026-08-01"
	if err := d.textIs(ctx, "book_table", args{"restaurant": "Chez Nous"}, booked); err != nil {
		return err
	}
	form, err := json.Marshal(d.peer.forms[len(d.peer.forms)-1].RequestedSchema)
	if err != nil {
		return err
	}
	return errors.Join(contains(string(form), `"guests"`), contains(string(form), `"date"`))
}

func (d *demo) elicitFormDecline(ctx context.Context) error {
	d.peer.formAnswer = &mcp.ElicitResult{Action: "decline"}
	return d.textIs(ctx, "book_table", args{"restaurant": "Chez Nous"}, "not booked: declined")
}

func (d *demo) elicitFormCancel(ctx context.Context) error {
	d.peer.formAnswer = &mcp.ElicitResult{Action: "cancel"}
	return d.textIs(ctx, "book_table", args{"restaurant": "Chez Nous"}, "not booked: cancelled")
}

func (d *demo) elicitURL(ctx context.Context) error {
	d.peer.urlAnswer = &mcp.ElicitResult{Action: "accept"}
	if _, err := d.call(ctx, "connect_account", args{"service": "calendar"}, nil); err != nil {
		return err
	}
	if err := equal("URL elicitations", len(d.peer.urls), 1); err != nil {
		return err
	}
	return contains(d.peer.urls[0].URL, "calendar")
}

func (d *demo) roots(ctx context.Context) error {
	result, err := d.call(ctx, "list_roots", nil, nil)
	if err != nil {
		return err
	}
	// The SDK's roots have no particular order.
	lines := strings.Split(text(result), "\n")
	slices.Sort(lines)
	return equal("roots", lines, rootURIs)
}

func (d *demo) listResources(ctx context.Context) error {
	uris, err := collect(d.session.Resources(ctx, nil), func(r *mcp.Resource) string { return r.URI })
	if err != nil {
		return err
	}
	return includes("resources", uris, "demo://readme", counter, "demo://logo")
}

func (d *demo) readResource(ctx context.Context) error {
	contents, err := d.read(ctx, "demo://readme")
	if err != nil {
		return err
	}
	return contains(contents.Text, "demo")
}

func (d *demo) readBlob(ctx context.Context) error {
	contents, err := d.read(ctx, "demo://logo")
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(contents.Blob, []byte("\x89PNG")) {
		return errors.New("not a PNG")
	}
	return equal("type", contents.MIMEType, "image/png")
}

func (d *demo) readTemplate(ctx context.Context) error {
	name := func(t *mcp.ResourceTemplate) string { return t.URITemplate }
	templates, err := collect(d.session.ResourceTemplates(ctx, nil), name)
	if err != nil {
		return err
	}
	if err := includes("templates", templates, "demo://greeting/{name}"); err != nil {
		return err
	}
	contents, err := d.read(ctx, "demo://greeting/Ada")
	if err != nil {
		return err
	}
	return contains(contents.Text, "Ada")
}

func (d *demo) unknownResource(ctx context.Context) error {
	_, err := d.read(ctx, "demo://nowhere")
	if d.modern {
		return hasCode(err, jsonrpc.CodeInvalidParams)
	}
	return hasCode(err, resourceNotFound)
}

func (d *demo) subscription(ctx context.Context) error {
	before, err := d.count(ctx)
	if err != nil {
		return err
	}
	var acks int
	d.peer.with(func() { acks, d.peer.updated = d.peer.acks, nil })
	if err := d.session.Subscribe(ctx, &mcp.SubscribeParams{URI: counter}); err != nil {
		return err
	}
	if d.modern {
		// Subscribe returns before the server has acknowledged the subscription.
		err := d.peer.wait(ctx, "the acknowledgement", func() bool { return d.peer.acks > acks })
		if err != nil {
			return err
		}
	}
	if _, err := d.call(ctx, "increment_counter", nil, nil); err != nil {
		return err
	}
	updated := func() bool { return slices.Contains(d.peer.updated, counter) }
	if err := d.peer.wait(ctx, "the update", updated); err != nil {
		return err
	}
	if err := d.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: counter}); err != nil {
		return err
	}
	after, err := d.count(ctx)
	if err != nil {
		return err
	}
	return equal("counter", after, before+1)
}

func (d *demo) unsubscribed(ctx context.Context) error {
	if d.modern {
		return skip("the SDK does not say when its subscription has ended")
	}
	d.peer.with(func() { d.peer.updated = nil })
	if _, err := d.call(ctx, "increment_counter", nil, nil); err != nil {
		return err
	}
	time.Sleep(quietTime)
	var updates int
	d.peer.with(func() { updates = len(d.peer.updated) })
	return equal("updates after unsubscribing", updates, 0)
}

func (d *demo) toolsListChanged(ctx context.Context) (err error) {
	// On a modern connection, the SDK listens from the start.
	before, err := d.toolNames(ctx)
	if err != nil {
		return err
	}
	var seen int
	d.peer.with(func() { seen = d.peer.toolLists })
	if _, err := d.call(ctx, "toggle_bonus_tool", nil, nil); err != nil {
		return err
	}
	defer func() {
		_, undone := d.call(ctx, "toggle_bonus_tool", nil, nil)
		err = errors.Join(err, undone)
	}()
	changed := func() bool { return d.peer.toolLists > seen }
	if err := d.peer.wait(ctx, "the change", changed); err != nil {
		return err
	}
	after, err := d.toolNames(ctx)
	if err != nil {
		return err
	}
	if difference := len(after) - len(before); difference != 1 && difference != -1 {
		return fmt.Errorf("%d tools came or went", difference)
	}
	return nil
}

func (d *demo) listPrompts(ctx context.Context) error {
	names, err := collect(d.session.Prompts(ctx, nil), func(p *mcp.Prompt) string { return p.Name })
	if err != nil {
		return err
	}
	return includes("prompts", names, "greet", "code_review")
}

func (d *demo) getPrompt(ctx context.Context) error {
	arguments := map[string]string{"name": "Ada", "language": "French"}
	prompt, err := d.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: arguments})
	if err != nil {
		return err
	}
	content, ok := prompt.Messages[0].Content.(*mcp.TextContent)
	if !ok {
		return errors.New("not a text")
	}
	return errors.Join(contains(content.Text, "Ada"), contains(content.Text, "French"))
}

func (d *demo) completion(ctx context.Context) error {
	result, err := d.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"},
		Argument: mcp.CompleteParamsArgument{Name: "language", Value: "G"},
	})
	if err != nil {
		return err
	}
	if slices.Contains(result.Completion.Values, "French") {
		return errors.New("the prefix was ignored")
	}
	return includes("values", result.Completion.Values, "German")
}

func (d *demo) logging(ctx context.Context) error {
	var meta mcp.Meta
	if d.modern {
		meta = mcp.Meta{mcp.MetaKeyLogLevel: "info"}
	} else if err := d.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		return err
	}
	d.peer.with(func() { d.peer.logs = nil })
	for _, message := range []args{
		{"level": "debug", "message": "too quiet"},
		{"level": "warning", "message": "loud enough"},
	} {
		if _, err := d.call(ctx, "write_log", message, meta); err != nil {
			return err
		}
	}
	arrived := func() bool { return len(d.peer.logs) > 0 }
	if err := d.peer.wait(ctx, "the message", arrived); err != nil {
		return err
	}
	var got []string
	d.peer.with(func() {
		for _, log := range d.peer.logs {
			got = append(got, fmt.Sprintf("%s: %v", log.Level, log.Data))
		}
	})
	return equal("messages", got, []string{"warning: loud enough"})
}

func (d *demo) cancel(ctx context.Context) error {
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	_, err := d.session.CallTool(short, &mcp.CallToolParams{
		Name:      "long_job",
		Arguments: args{"steps": 1000, "interval_ms": 100},
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("expected that the call is cancelled, got %v", err)
	}
	return d.textIs(ctx, "echo", args{"text": "still here"}, "still here")
}

func (d *demo) toolError(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "fail", Arguments: args{"message": "it broke"}}
	result, err := d.session.CallTool(ctx, params)
	if err != nil {
		return err
	}
	return errors.Join(equal("isError", result.IsError, true), contains(text(result), "it broke"))
}

func (d *demo) badArguments(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "add", Arguments: args{"a": "two", "b": 40}}
	result, err := d.session.CallTool(ctx, params)
	if err != nil {
		return err
	}
	return equal("isError", result.IsError, true)
}

func (d *demo) unknownTool(ctx context.Context) error {
	_, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool", Arguments: args{}})
	return hasCode(err, jsonrpc.CodeInvalidParams)
}

func (d *demo) concurrentCalls(ctx context.Context) error {
	errs := make([]error, 20)
	var group sync.WaitGroup
	for number := range errs {
		group.Go(func() {
			message := fmt.Sprintf("call %d", number)
			errs[number] = d.textIs(ctx, "echo", args{"text": message}, message)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (d *demo) ping(ctx context.Context) error {
	if d.modern {
		return skip("2026-07-28 has no ping")
	}
	return d.session.Ping(ctx, nil)
}

// args are the arguments of a tool.
type args map[string]any

// call calls a tool that must not fail.
func (d *demo) call(ctx context.Context, tool string, arguments args, meta mcp.Meta) (*mcp.CallToolResult, error) {
	if arguments == nil {
		arguments = args{}
	}
	params := &mcp.CallToolParams{Meta: meta, Name: tool, Arguments: arguments}
	result, err := d.session.CallTool(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if result.IsError {
		return nil, fmt.Errorf("%s failed: %s", tool, text(result))
	}
	return result, nil
}

// textIs calls a tool that must answer with want.
func (d *demo) textIs(ctx context.Context, tool string, arguments args, want string) error {
	result, err := d.call(ctx, tool, arguments, nil)
	if err != nil {
		return err
	}
	return equal("text", text(result), want)
}

func (d *demo) toolNames(ctx context.Context) ([]string, error) {
	return collect(d.session.Tools(ctx, nil), func(t *mcp.Tool) string { return t.Name })
}

func (d *demo) read(ctx context.Context, uri string) (*mcp.ResourceContents, error) {
	result, err := d.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if len(result.Contents) == 0 {
		return nil, errors.New("no contents")
	}
	return result.Contents[0], nil
}

func (d *demo) count(ctx context.Context) (int, error) {
	contents, err := d.read(ctx, counter)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.Map(func(r rune) rune {
		if r == '-' || (r >= '0' && r <= '9') {
			return r
		}
		return -1
	}, contents.Text))
}

// text is the first text block of a result.
func text(result *mcp.CallToolResult) string {
	for _, block := range result.Content {
		if content, ok := block.(*mcp.TextContent); ok {
			return content.Text
		}
	}
	return ""
}

// collect names everything in a listing, following its pages.
func collect[T any](items iter.Seq2[T, error], name func(T) string) ([]string, error) {
	var names []string
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		names = append(names, name(item))
	}
	return names, nil
}

// hasCode is an error unless err is the JSON-RPC error with that code.
func hasCode(err error, code int64) error {
	var protocol *jsonrpc.Error
	if !errors.As(err, &protocol) {
		return fmt.Errorf("expected error %d, got %v", code, err)
	}
	return equal("error code", protocol.Code, code)
}
