package shoal

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
)

const (
	look = time.Second
	// Time without a reachable node before the seeds are tried again.
	reseedAfter = 5 * time.Second
	leaveLook   = 50 * time.Millisecond
	lastWords   = 3 * time.Second
	backoffMin  = 50 * time.Millisecond
	backoffMax  = 2 * time.Second
)

// dialer keeps one link to each node. Nodes report other nodes.
type dialer struct {
	runtime *runtime
	seeds   []string
	tls     *TLS

	mu    sync.Mutex
	links map[string]*joined
	alone time.Time
	tasks sync.WaitGroup
}

// joined is a dialled address, and its link while the link is up.
type joined struct {
	cancel context.CancelFunc
	link   *link
	done   chan struct{}
}

// run follows the nodes' reports until ctx ends.
func (d *dialer) run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		d.mu.Lock()
		d.revise(ctx)
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			d.tasks.Wait()
			return
		case <-d.runtime.linksChanged:
		case <-ticker.C:
		}
	}
}

func (d *dialer) revise(ctx context.Context) {
	up := map[string]*link{}
	for address, at := range d.links {
		if at.link != nil {
			up[address] = at.link
		}
	}
	if len(up) == 0 {
		if time.Since(d.alone) >= reseedAfter {
			d.alone = time.Now()
			for _, seed := range d.seeds {
				d.dial(ctx, seed)
			}
		}
		return
	}
	d.alone = time.Now()
	told, own := map[string]*typesv1.Node{}, map[string]bool{}
	d.runtime.mu.Lock()
	for _, l := range up {
		for _, node := range l.nodes {
			if node.GetEdge() || node.GetSession() {
				told[node.GetId()] = node
				own[node.GetAddress()] = true
			}
		}
	}
	d.runtime.mu.Unlock()
	// A second link replaces the first at its node, so a node's own address sorts before seeds that lead to it.
	addresses := slices.SortedFunc(maps.Keys(up), func(a, b string) int {
		switch {
		case own[a] == own[b]:
			return 0
		case own[a]:
			return -1
		}
		return 1
	})
	linked := map[string]bool{}
	for _, address := range addresses {
		node := up[address].welcome.GetNode()
		if linked[node] {
			d.hangUp(address)
		}
		linked[node] = true
	}
	for address, at := range d.links {
		if at.link == nil && !own[address] {
			d.hangUp(address)
		}
	}
	for id, node := range told {
		if !linked[id] && node.GetAddress() != "" && !node.GetDraining() {
			d.dial(ctx, node.GetAddress())
		}
	}
}

func (d *dialer) hangUp(address string) {
	d.links[address].cancel()
	delete(d.links, address)
}

// dial keeps a link to an address until the link is given up or the worker has said goodbye.
func (d *dialer) dial(ctx context.Context, address string) {
	if d.links[address] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	at := &joined{cancel: cancel, done: make(chan struct{})}
	d.links[address] = at
	d.tasks.Go(func() {
		defer close(at.done)
		pause, told := backoffMin, ""
		for ctx.Err() == nil {
			var up *link
			err := dialLink(ctx, d.runtime, address, d.tls, func(l *link) {
				up = l
				d.set(at, l)
				d.runtime.log.Info("joined a node", "node", l.welcome.GetNode(), "address", address)
			})
			d.set(at, nil)
			if up != nil {
				pause, told = backoffMin, ""
				d.runtime.log.Info("a link ended", "node", up.welcome.GetNode(), "reason", err)
				if d.hasParted(up) {
					return
				}
			} else if reason := fmt.Sprint(err); reason != told && ctx.Err() == nil {
				// Log each reason once, because the retries continue.
				told = reason
				d.runtime.log.Warn("no link to a node", "address", address, "reason", reason)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause/2 + rand.N(pause/2)):
			}
			pause = min(2*pause, backoffMax)
		}
	})
}

func (d *dialer) hasParted(l *link) bool {
	d.runtime.mu.Lock()
	defer d.runtime.mu.Unlock()
	return l.parted
}

func (d *dialer) set(at *joined, l *link) {
	d.mu.Lock()
	at.link = l
	d.mu.Unlock()
	select {
	case d.runtime.linksChanged <- struct{}{}:
	default:
	}
}

func (d *dialer) up() []*joined {
	d.mu.Lock()
	defer d.mu.Unlock()
	var up []*joined
	for _, at := range d.links {
		if at.link != nil {
			up = append(up, &joined{link: at.link, done: at.done})
		}
	}
	return up
}

// leave lets calls finish for a while, says goodbye to every node and waits for the answers.
func (d *dialer) leave(ctx context.Context) {
	r := d.runtime
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	d.tell(ctx, (*link).announce)
	deadline := time.Now().Add(r.limits.Drain)
	for d.isBusy() {
		if time.Now().After(deadline) {
			r.log.Warn("stopping calls that did not end in time", "calls", r.openCalls())
			r.stopAll()
			break
		}
		time.Sleep(leaveLook)
	}
	over := time.After(lastWords)
	up := d.up()
	d.tell(ctx, (*link).part)
	for _, at := range up {
		select {
		case <-at.done:
		case <-over:
			return
		}
	}
}

// tell sends something to every node at the same time, so that a slow one delays no other.
func (d *dialer) tell(ctx context.Context, what func(*link, context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	var told sync.WaitGroup
	for _, at := range d.up() {
		told.Go(func() { _ = what(at.link, ctx) })
	}
	told.Wait()
}

func (d *dialer) isBusy() bool {
	if d.runtime.openCalls() > 0 {
		return true
	}
	up := d.up()
	d.runtime.mu.Lock()
	defer d.runtime.mu.Unlock()
	return slices.ContainsFunc(up, func(at *joined) bool { return at.link.isRead() })
}
