package harness

import (
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// Storage is a limit that a test can reach and lift.
type Storage struct {
	Fill, Lift func()
	Code       jetstream.ErrorCode // the error code of the refusals
}

// AccountStorage is the limit of the account for file storage.
func AccountStorage(c *Client, s *natstest.Server) Storage {
	return AccountLimit(c, s, func(l *server.JetStreamAccountLimits) { l.MaxStore = 0 })
}

// AccountLimit is a limit of the account, which a function reaches.
func AccountLimit(c *Client, s *natstest.Server, reach func(*server.JetStreamAccountLimits)) Storage {
	limit := func(change func(*server.JetStreamAccountLimits)) {
		c.T.Helper()
		limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1,
			MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
		change(&limits)
		all := map[string]server.JetStreamAccountLimits{"": limits}
		if err := s.Server().GlobalAccount().UpdateJetStreamLimits(all); err != nil {
			c.T.Fatalf("change the account's limits: %v", err)
		}
	}
	return Storage{Code: 10002, Fill: func() { limit(reach) },
		Lift: func() { limit(func(*server.JetStreamAccountLimits) {}) }}
}
