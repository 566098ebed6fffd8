package shoal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

const (
	lowestVersion, highestVersion = 3, 4
	longestMessage                = 128 << 10
	// Longer frames are sent in fragments of half this size.
	longestWhole = 64 << 10
	// Maximum frames in fragments at a time, in each direction.
	lanes = 8
	// Maximum queued messages.
	waiting          = 64
	pingAfter        = 2 * time.Second
	pingTimeout      = 3 * time.Second
	handshakeTimeout = 3 * time.Second
	// How often to check the load.
	tick = 50 * time.Millisecond
)

// link is one connection to the node at an address.
type link struct {
	runtime      *runtime
	address      string
	welcome      *workerv1.Welcome
	longestFrame int
	credit       int64
	out          chan *workerv1.WorkerFrame
	lanes        chan struct{}
	parts        map[uint64][]byte
	heard        atomic.Int64
	// The runtime's lock guards these.
	flights map[uint64]*flight
	nodes   []*typesv1.Node
	parted  bool
}

// dialLink dials a node and exchanges hello and welcome. Then it calls up, and drives the link until it ends.
func dialLink(ctx context.Context, r *runtime, address string, files *TLS, up func(*link)) error {
	transport := insecure.NewCredentials()
	if files != nil {
		config, err := files.config()
		if err != nil {
			return err
		}
		transport = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		// Nodes are inside the cluster, so ignore the environment's proxy.
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longestMessage)))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	handshake := time.AfterFunc(handshakeTimeout, func() { cancel(errors.New("no welcome came")) })
	stream, err := workerv1.NewWorkerLinkClient(connection).Link(ctx)
	if err != nil {
		return cause(ctx, err)
	}
	l := &link{
		runtime: r,
		address: address,
		out:     make(chan *workerv1.WorkerFrame, waiting),
		lanes:   make(chan struct{}, lanes),
		parts:   map[uint64][]byte{},
		flights: map[uint64]*flight{},
	}
	if err := l.greet(stream); err != nil {
		return cause(ctx, err)
	}
	handshake.Stop()
	l.heard.Store(time.Now().UnixNano())
	up(l)
	defer l.end()
	go l.write(stream, cancel)
	// The load goes first, because a node refuses calls until it knows the worker's capacity.
	load := r.load()
	if err := l.report(ctx, load); err != nil {
		return cause(ctx, err)
	}
	go l.tick(ctx, cancel, load)
	if err := l.announce(ctx); err != nil {
		return cause(ctx, err)
	}
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the node ended the link")
		}
		if err != nil {
			return cause(ctx, err)
		}
		l.heard.Store(time.Now().UnixNano())
		if err := l.handle(ctx, frame); err != nil {
			return cause(ctx, err)
		}
	}
}

func cause(ctx context.Context, err error) error {
	if reason := context.Cause(ctx); reason != nil {
		return reason
	}
	return err
}

func (l *link) greet(stream grpc.BidiStreamingClient[workerv1.WorkerFrame, workerv1.NodeFrame]) error {
	r := l.runtime
	r.mu.Lock()
	number := r.ledger.number()
	r.mu.Unlock()
	hello := &workerv1.Hello{
		Versions:    &typesv1.Versions{Lowest: lowestVersion, Highest: highestVersion},
		Worker:      r.name,
		Incarnation: r.ledger.incarnation,
		Limits:      &typesv1.Limits{FrameBytes: uint64(r.limits.FrameBytes)},
		Ledger:      &number,
	}
	if err := stream.Send(&workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Hello{Hello: hello}}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	welcome := first.GetWelcome()
	if welcome == nil {
		return errors.New("the first frame is no welcome")
	}
	if version := welcome.GetVersion(); version < lowestVersion || version > highestVersion {
		return fmt.Errorf("the node speaks version %d, which was not offered", version)
	}
	l.welcome, l.nodes = welcome, welcome.GetNodes()
	l.longestFrame, l.credit = 16<<20, 256<<10
	if frame := welcome.GetLimits().GetFrameBytes(); frame != 0 {
		l.longestFrame = int(frame)
	}
	if credit := welcome.GetLimits().GetCreditBytes(); credit != 0 {
		l.credit = int64(credit)
	}
	return nil
}

// end ends every flight; the calls continue.
func (l *link) end() {
	l.runtime.mu.Lock()
	defer l.runtime.mu.Unlock()
	for _, f := range l.flights {
		f.cancel()
		f.stopReading()
	}
	clear(l.flights)
}

// write sends queued frames until a nil.
func (l *link) write(stream grpc.BidiStreamingClient[workerv1.WorkerFrame, workerv1.NodeFrame], cancel context.CancelCauseFunc) {
	for {
		select {
		case <-stream.Context().Done():
			return
		case frame := <-l.out:
			if frame == nil {
				if err := stream.CloseSend(); err != nil {
					cancel(err)
				}
				return
			}
			// The receiver gets the error.
			if stream.Send(frame) != nil {
				return
			}
		}
	}
}

// send sends a frame, in fragments if it is long. Frames of one flight must not be sent concurrently.
func (l *link) send(ctx context.Context, flight uint64, frame *workerv1.WorkerFrame) error {
	if proto.Size(frame) <= longestWhole {
		return l.put(ctx, frame)
	}
	encoded, err := proto.Marshal(frame)
	if err != nil {
		return err
	}
	select {
	case l.lanes <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.lanes }()
	for len(encoded) > 0 {
		size := min(len(encoded), longestWhole/2)
		part := &typesv1.Fragment{Flight: flight, Data: encoded[:size], Last: size == len(encoded)}
		encoded = encoded[size:]
		if err := l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Fragment{Fragment: part}}); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) put(ctx context.Context, frame *workerv1.WorkerFrame) error {
	select {
	case l.out <- frame:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) announce(ctx context.Context) error {
	r := l.runtime
	r.mu.Lock()
	draining := r.draining
	r.mu.Unlock()
	said := &workerv1.Announce{Pool: r.pool, Catalog: r.catalog(), Draining: draining}
	return l.send(ctx, 0, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Announce{Announce: said}})
}

// report sends the worker's load and capacity.
func (l *link) report(ctx context.Context, load *workerv1.Load) error {
	return l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Load{Load: load}})
}

// tick reports changes of the load, and checks whether the node is alive.
func (l *link) tick(ctx context.Context, cancel context.CancelCauseFunc, reported *workerv1.Load) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	asked, last := false, time.Now()
	for {
		if load := l.runtime.load(); !proto.Equal(load, reported) {
			reported = load
			if l.report(ctx, load) != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		if now.Sub(last) > pingAfter {
			// This process was suspended, so the silence says nothing about the node.
			l.heard.Store(now.UnixNano())
		}
		last = now
		silent := now.Sub(time.Unix(0, l.heard.Load()))
		switch {
		case silent > pingAfter+pingTimeout:
			cancel(errors.New("the node says nothing"))
			return
		case silent <= pingAfter:
			asked = false
		case !asked:
			asked = true
			ping := &typesv1.Ping{Nonce: uint64(now.UnixMicro())}
			if l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Ping{Ping: ping}}) != nil {
				return
			}
		}
	}
}

// over ends a flight; called by the flight's own goroutine.
func (l *link) over(f *flight) {
	l.runtime.mu.Lock()
	defer l.runtime.mu.Unlock()
	delete(l.flights, f.flight)
	f.cancel()
	f.stopReading()
}

// isRead reports whether a flight waits for events. The lock is held.
func (l *link) isRead() bool {
	for _, f := range l.flights {
		if f.reading {
			return true
		}
	}
	return false
}

// part says goodbye. Starts are refused until the node ends the link.
func (l *link) part(ctx context.Context) error {
	l.runtime.mu.Lock()
	l.parted = true
	l.runtime.mu.Unlock()
	return l.put(ctx, &workerv1.WorkerFrame{Frame: &workerv1.WorkerFrame_Goodbye{Goodbye: &workerv1.Goodbye{}}})
}
