package shoal

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	typesv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/types/v1"
	workerv1 "github.com/shoal-mcp/shoal/workers/go/shoalpb/worker/v1"
)

// leaving is a node that starts a call after the worker's goodbye, and closes the link.
type leaving struct {
	workerv1.UnimplementedWorkerLinkServer
	announced, over chan struct{}
	refused         chan *workerv1.Refused
}

func (n *leaving) Link(stream grpc.BidiStreamingServer[workerv1.WorkerFrame, workerv1.NodeFrame]) error {
	welcome := &workerv1.Welcome{Version: highestVersion, Node: "node"}
	if err := stream.Send(&workerv1.NodeFrame{Frame: &workerv1.NodeFrame_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	for {
		frame, err := stream.Recv()
		if err != nil {
			// The test decides when the node ends its half.
			<-n.over
			return nil
		}
		switch said := frame.GetFrame().(type) {
		case *workerv1.WorkerFrame_Announce:
			select {
			case n.announced <- struct{}{}:
			default:
			}
		case *workerv1.WorkerFrame_Goodbye:
			call := &typesv1.Call{
				Id: make([]byte, 16), Method: "tools/call", TimeoutMs: 60_000,
				Durability: typesv1.Durability_DURABILITY_REPEATABLE,
			}
			start := &workerv1.Start{Flight: 1, Call: call}
			for _, frame := range []*workerv1.NodeFrame{
				{Frame: &workerv1.NodeFrame_Start{Start: start}},
				{Frame: &workerv1.NodeFrame_Close{Close: &typesv1.Close{}}},
			} {
				if err := stream.Send(frame); err != nil {
					return err
				}
			}
		case *workerv1.WorkerFrame_Refused:
			n.refused <- said.Refused
		}
	}
}

func TestAWorkerThatLeavesStaysUntilTheNodeHasReadWhatItRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := &leaving{announced: make(chan struct{}, 1), over: make(chan struct{}), refused: make(chan *workerv1.Refused, 1)}
	server := grpc.NewServer()
	workerv1.RegisterWorkerLinkServer(server, node)
	go server.Serve(listener)
	defer server.Stop()
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- NewWorker("test").Run(ctx, listener.Addr().String()) }()
	await(t, node.announced, "the announcement")
	leave()
	if refused := await(t, node.refused, "the refusal"); refused.GetFlight() != 1 || refused.GetFailure().GetNotExecuted() == nil {
		t.Errorf("%v is no refusal of the call", refused)
	}
	select {
	case <-ended:
		t.Error("the worker has ended before the node")
	case <-time.After(300 * time.Millisecond):
	}
	close(node.over)
	if err := await(t, ended, "the worker's end"); err != nil {
		t.Error(err)
	}
}

func await[T any](t *testing.T, what <-chan T, name string) T {
	t.Helper()
	select {
	case got := <-what:
		return got
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not come", name)
		panic("unreachable")
	}
}
