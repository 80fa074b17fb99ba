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
// A caller can then repeat the request. A change ends after ChangeTimeout, if that is set.
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
		p, patient := provisioner(js, true), provisioner(js, true)
		patient.ChangeTimeout = 30 * time.Second
		spec := wantedSpecs("1m")[0]
		for _, tt := range []struct {
			name string
			ask  func(context.Context) error
			want time.Duration
		}{
			{"list", func(ctx context.Context) error { _, _, err := p.Find(ctx); return err }, 5 * time.Second},
			{"create", func(ctx context.Context) error { return p.create(ctx, spec) }, 5 * time.Second},
			{"update", func(ctx context.Context) error { return p.update(ctx, spec.Config()) }, 5 * time.Second},
			{"patient create", func(ctx context.Context) error { return patient.create(ctx, spec) }, 30 * time.Second},
			{"patient update", func(ctx context.Context) error { return patient.update(ctx, spec.Config()) }, 30 * time.Second},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			start := time.Now()
			err := tt.ask(ctx)
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != tt.want {
				t.Errorf("%s: %v after %s, want a deadline exceeded after %s", tt.name, err, took, tt.want)
			}
			cancel()
		}
		if got := asked.Load(); got != 5 {
			t.Errorf("%d requests, want 5", got)
		}
	})
}
