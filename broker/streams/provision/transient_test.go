package provision

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
)

// TestTransient: at its start, a broker waits after temporary errors, and ends after others.
func TestTransient(t *testing.T) {
	t.Parallel()
	api := func(code int, errCode jetstream.ErrorCode, description string) error {
		return &jetstream.APIError{Code: code, ErrorCode: errCode, Description: description}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{context.DeadlineExceeded, true},
		{nats.ErrNoResponders, true},
		{jsapi.ErrChanged, true},
		{api(503, 10008, "JetStream system temporarily unavailable"), true},
		{api(400, jsapi.CodeNoPeers, "no suitable peers for placement, peer offline"), true},
		{api(400, jsapi.CodeNoPeers, "no suitable peers for placement, insufficient storage"), false},
		{api(400, 10052, "subjects overlap with an existing stream"), false},
		{errors.New("anything else"), false},
	} {
		if got := isTransient(fmt.Errorf("create stream: %w", c.err)); got != c.want {
			t.Errorf("%v: got transient %v, want %v", c.err, got, c.want)
		}
	}
}

// TestTooFewServers: streams get one copy only if the cluster has too few servers. A full or an offline server is no
// reason.
func TestTooFewServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code        jetstream.ErrorCode
		description string
		want        bool
	}{
		{jsapi.CodeNoReplicas, "replicas > 1 not supported in non-clustered mode", true},
		{jsapi.CodeNoPeers, "no suitable peers for placement", true},
		{jsapi.CodeNoPeers, "no suitable peers for placement, peer offline", false},
		{jsapi.CodeNoPeers, "no suitable peers for placement, insufficient storage", false},
		{jsapi.CodeNoPeers, "no suitable peers for placement, server tag not unique", false},
		{jsapi.CodeNoPeers, "no suitable peers for placement, miscellaneous issue", false}, // max_ha_assets
		{jsapi.CodeNoPeers, "no suitable peers for placement, tags not matched ['ssd']", false},
		{10052, "subjects overlap with an existing stream", false},
	} {
		err := &jetstream.APIError{Code: 400, ErrorCode: c.code, Description: c.description}
		if got := tooFewServers(err); got != c.want {
			t.Errorf("%s: got %t, want %t", c.description, got, c.want)
		}
	}
}
