// Command go drives a server with the official Go SDK and reports what works.
//
// By hand: go run . --url http://127.0.0.1:PORT/mcp --era modern
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// versions are the SDK's requested versions: from 2026-07-28 on it begins with server/discover, before that with
// initialize.
var versions = map[string]string{"legacy": "2025-11-25", "modern": "2026-07-28"}

func main() {
	url := flag.String("url", "", "where the server is; HTTP+SSE if it ends in /sse")
	era := flag.String("era", "legacy", "legacy or modern")
	suite := flag.String("expect", "demo", "which server it is; this program knows demo only")
	var r runner
	flag.Func("only", "run this check alone; may be repeated", func(name string) error {
		r.only = append(r.only, name)
		return nil
	})
	flag.Parse()
	version, known := versions[*era]
	if *url == "" || !known || *suite != "demo" {
		flag.Usage()
		os.Exit(2)
	}

	p := &peer{formAnswer: &mcp.ElicitResult{Action: "cancel"}, urlAnswer: &mcp.ElicitResult{Action: "cancel"}}
	var session *mcp.ClientSession
	connect := check{"connect", func(context.Context) (err error) {
		// Not the check's context, which would end the session's streams.
		options := &mcp.ClientSessionOptions{ProtocolVersion: version}
		session, err = p.client().Connect(context.Background(), transport(*url), options)
		if err != nil {
			return err
		}
		if session.InitializeResult().Capabilities.Tools == nil {
			return errors.New("no tools capability")
		}
		return equal("negotiated version", session.InitializeResult().ProtocolVersion, version)
	}}
	if r.do(connect); session == nil {
		fmt.Fprintln(os.Stderr, "not connected")
		os.Exit(1)
	}
	d := &demo{session: session, peer: p, modern: *era == "modern"}
	for _, c := range d.checks() {
		r.do(c)
	}
	r.do(check{"close", func(context.Context) error { return session.Close() }})
	r.exit()
}

func transport(url string) mcp.Transport {
	if strings.HasSuffix(url, "/sse") {
		return &mcp.SSEClientTransport{Endpoint: url}
	}
	return &mcp.StreamableClientTransport{Endpoint: url}
}
