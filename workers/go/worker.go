package shoal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"

	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// Worker holds the tools of one pool. Add tools before it runs. All workers of a pool must offer the same tools.
type Worker struct {
	pool, version, instructions, name string
	limits                            Limits
	tls                               *TLS
	log                               *slog.Logger
	definitions                       [][]byte
	tools                             map[string]runTool
}

// NewWorker makes a worker of a pool. The default pool is SHOAL_POOL, or else "go".
func NewWorker(pool string, options ...Option) *Worker {
	w := &Worker{
		pool:    pool,
		version: "0",
		limits:  DefaultLimits(),
		tls:     TLSFromEnvironment(),
		log:     slog.Default(),
		tools:   map[string]runTool{},
	}
	if w.pool == "" {
		w.pool = os.Getenv("SHOAL_POOL")
	}
	if w.pool == "" {
		w.pool = "go"
	}
	for _, option := range options {
		option(w)
	}
	return w
}

func (w *Worker) add(d definition, run runTool) {
	encoded, err := json.Marshal(d)
	if err != nil {
		panic("shoal: tool " + d.Name + ": " + err.Error())
	}
	w.definitions = append(w.definitions, encoded)
	w.tools[d.Name] = run
}

// Run joins the nodes and serves until ctx ends; then calls may finish within Limits.Drain. join names nodes
// (host:port, or several with commas); one reachable node is enough. The default is SHOAL_JOIN.
func (w *Worker) Run(ctx context.Context, join ...string) error {
	if len(join) == 0 {
		join = []string{os.Getenv("SHOAL_JOIN")}
	}
	var seeds []string
	for _, seed := range strings.Split(strings.Join(join, ","), ",") {
		if seed = strings.TrimSpace(seed); seed != "" {
			seeds = append(seeds, seed)
		}
	}
	if len(seeds) == 0 {
		return errors.New("no node to join: name one (host:port), or set SHOAL_JOIN")
	}
	if w.tls != nil {
		// Report this at once, because it would break every link.
		if _, err := w.tls.config(); err != nil {
			return err
		}
	}
	runtime := newRuntime(w, w.fullName())
	// Links outlive ctx, so that calls can finish.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	d := &dialer{runtime: runtime, seeds: seeds, tls: w.tls, links: map[string]*joined{}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		d.run(life)
	}()
	go runtime.sweep(life)
	<-ctx.Done()
	w.log.Info("leaving", "calls", runtime.openCalls())
	d.leave(life)
	end()
	<-over
	return nil
}

func (w *Worker) fullName() string {
	name := w.name
	if name == "" {
		name = os.Getenv("SHOAL_WORKER")
	}
	if name == "" {
		// Without a host name, the random number is enough.
		name, _ = os.Hostname()
	}
	return fmt.Sprintf("%s@%s-%08x", w.pool, name, rand.Uint32())
}

func (w *Worker) catalog() *workerv1.Catalog {
	info, err := json.Marshal(map[string]string{"name": w.pool, "version": w.version})
	if err != nil {
		panic(err)
	}
	catalog := &workerv1.Catalog{
		ServerInfo:      info,
		Capabilities:    []byte(`{"tools":{},"logging":{}}`),
		Tools:           w.definitions,
		ToolsGeneration: 1,
	}
	if w.instructions != "" {
		catalog.Instructions = &w.instructions
	}
	return catalog
}
