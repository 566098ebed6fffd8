package shoal

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// Limits bounds a worker's calls and memory.
type Limits struct {
	// Concurrency is the maximum number of running calls.
	Concurrency int
	// Queue is the maximum number of waiting calls; more are refused.
	Queue int
	// QueueAge is how long a call may wait for a slot before it is refused.
	QueueAge time.Duration
	// Asking is the maximum number of calls that wait for their clients' answers. They use no slot.
	Asking int
	// AskingPerPrincipal is the same maximum for one principal.
	AskingPerPrincipal int
	// Kept is how long readers can attach to an ended call.
	Kept time.Duration
	// KeptCalls and KeptBytes are the maxima for ended calls.
	KeptCalls, KeptBytes int
	// Remembered is how many ids are remembered of calls that must not run again, after their results are gone.
	Remembered int
	// CancelGrace is how long a stopped tool may keep its slot.
	CancelGrace time.Duration
	// Deserted is how long a call without a session continues without a reader.
	Deserted time.Duration
	// FrameBytes is the maximum size of a received frame.
	FrameBytes int
	// Drain is how long calls may continue after the worker was told to end.
	Drain time.Duration
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits {
	return Limits{
		Concurrency:        128,
		Queue:              1024,
		QueueAge:           5 * time.Second,
		Asking:             1024,
		AskingPerPrincipal: 256,
		Kept:               time.Minute,
		KeptCalls:          10_000,
		KeptBytes:          64 << 20,
		Remembered:         100_000,
		CancelGrace:        5 * time.Second,
		Deserted:           10 * time.Second,
		FrameBytes:         16 << 20,
		Drain:              30 * time.Second,
	}
}

// TLS names the files of a worker's certificate, which are read for each link.
type TLS struct {
	Certificate, Key, Authority string
	// Name is the name in nodes' certificates (cluster.tls.name).
	Name string
}

// TLSFromEnvironment reads SHOAL_TLS_CERTIFICATE, _KEY, _AUTHORITY and _NAME, as the chart sets them; nil without any
// of the files. If only some are set, [Worker.Run] fails, because a misspelt name must not lead to plaintext.
func TLSFromEnvironment() *TLS {
	files := &TLS{
		Certificate: os.Getenv("SHOAL_TLS_CERTIFICATE"),
		Key:         os.Getenv("SHOAL_TLS_KEY"),
		Authority:   os.Getenv("SHOAL_TLS_AUTHORITY"),
		Name:        os.Getenv("SHOAL_TLS_NAME"),
	}
	if files.Certificate == "" && files.Key == "" && files.Authority == "" {
		return nil
	}
	if files.Name == "" {
		files.Name = "shoal"
	}
	return files
}

func (t *TLS) config() (*tls.Config, error) {
	for _, file := range []struct{ name, path string }{
		{"Certificate", t.Certificate}, {"Key", t.Key}, {"Authority", t.Authority},
	} {
		if file.path == "" {
			return nil, fmt.Errorf("TLS: %s is missing (SHOAL_TLS_%s)", file.name, strings.ToUpper(file.name))
		}
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, err
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", t.Authority)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		RootCAs:      authority,
		ServerName:   t.Name,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// Option changes a worker.
type Option func(*Worker)

// WithVersion sets the version that clients see.
func WithVersion(version string) Option { return func(w *Worker) { w.version = version } }

// WithInstructions sets the instructions for models.
func WithInstructions(text string) Option { return func(w *Worker) { w.instructions = text } }

// WithLimits replaces [DefaultLimits].
func WithLimits(limits Limits) Option { return func(w *Worker) { w.limits = limits } }

// WithTLS makes links mutual TLS. The default is [TLSFromEnvironment].
func WithTLS(files *TLS) Option { return func(w *Worker) { w.tls = files } }

// WithName sets the prefix of the worker's name. The default is SHOAL_WORKER or the host name.
func WithName(name string) Option { return func(w *Worker) { w.name = name } }

// WithLogger sets where the worker logs.
func WithLogger(logger *slog.Logger) Option { return func(w *Worker) { w.log = logger } }

// ToolOption changes a tool.
type ToolOption func(*definition)

// ReadOnly marks the tool as read-only, so that Shoal may run a call again after its worker was lost.
func ReadOnly() ToolOption { return hint("readOnlyHint", true) }

// Idempotent marks the tool as safe to repeat, so that Shoal may run a call again after its worker was lost.
func Idempotent() ToolOption { return hint("idempotentHint", true) }

// Destructive says whether the tool may destroy data.
func Destructive(destructive bool) ToolOption { return hint("destructiveHint", destructive) }

// OpenWorld says whether the tool interacts with external systems.
func OpenWorld(open bool) ToolOption { return hint("openWorldHint", open) }

// Title sets a tool's title.
func Title(title string) ToolOption { return func(d *definition) { d.Title = title } }

// InputSchema replaces the schema that the argument type makes. The value must be convertible to JSON.
func InputSchema(schema any) ToolOption { return func(d *definition) { d.InputSchema = schema } }

func hint(name string, value bool) ToolOption {
	return func(d *definition) {
		if d.Annotations == nil {
			d.Annotations = map[string]bool{}
		}
		d.Annotations[name] = value
	}
}
