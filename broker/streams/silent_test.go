package streams

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestSilentJetStream: each request without an answer, as in a cluster without a meta leader, ends after five seconds.
// A caller can then repeat the request.
func TestSilentJetStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		var asked atomic.Int32
		if _, err := nc.Subscribe("silent.>", func(*nats.Msg) { asked.Add(1) }); err != nil {
			t.Fatal(err)
		}
		natstest.Flush(t, nc)
		js, err := jetstream.NewWithAPIPrefix(nc, "silent")
		if err != nil {
			t.Fatal(err)
		}
		p := provisioner(js, true)
		for what, ask := range map[string]func(context.Context) error{
			"list":   func(ctx context.Context) error { _, _, err := p.Provision(ctx, wantedSpecs("1m")); return err },
			"create": func(ctx context.Context) error { return p.create(ctx, wantedSpecs("1m")[0]) },
			"update": func(ctx context.Context) error { return p.update(ctx, wantedSpecs("1m")[0].Config()) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			err := ask(ctx)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
				t.Errorf("%s: %v after %s, want a deadline exceeded after 5s", what, err, took)
			}
			cancel()
		}
		if got := asked.Load(); got != 3 {
			t.Errorf("%d requests, want 3", got)
		}
	})
}
