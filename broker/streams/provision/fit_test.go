package provision

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/config"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

func smallConfig(t *testing.T) config.Config {
	t.Helper()
	ladder, err := levels.Parse("1s 1m 1h")
	natstest.NoError(t, err)
	retry, err := levels.Parse("10s")
	natstest.NoError(t, err)
	return config.Config{
		Provision: true, Ladder: ladder, RetryLadder: retry, Timers: true, IntakeDurations: []string{},
	}
}

// TestFit starts provisioning under each limit of an account, of a user or of the server: at exactly the need, one
// below, and far below. Below the need, the error names the limit, the need and the setting, and nothing is created.
func TestFit(t *testing.T) {
	const storage = 1 << 30
	count := 9 // streams of smallConfig
	wanted, err := StreamsOf(smallConfig(t))
	natstest.NoError(t, err)
	subscriptions := subscriptionsOf(wanted.Wanted(1<<20, false))
	bounded := smallConfig(t)
	bounded.Storage = storage
	withStorage, err := StreamsOf(bounded)
	natstest.NoError(t, err)
	var sum, largest int64
	for _, s := range withStorage.Wanted(1<<20, false) {
		sum, largest = sum+s.MaxBytes, max(largest, s.MaxBytes)
	}
	if sum > storage {
		t.Errorf("the parts are %d bytes together, want at most %d", sum, storage)
	}
	for _, tt := range []struct {
		name, says string
		need       int64
		storage    int64
		set        func(c *jwt.AccountClaims, o *server.Options, limit int64)
	}{
		{"streams", "streams: need 9, limit %d: raise max_streams", int64(count), 0,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) { c.Limits.JetStreamLimits.Streams = n }},
		{"consumers", "consumers of a stream: need 2, limit %d: raise max_consumers", 2, 0,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) { c.Limits.JetStreamLimits.Consumer = n }},
		{"storage", "bytes of storage: need " + strconv.FormatInt(sum, 10) + ", limit %d: lower DELAY_STORAGE", sum, storage,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) { c.Limits.JetStreamLimits.DiskStorage = n }},
		{"bytes of a stream", "bytes of a stream: need " + strconv.FormatInt(largest, 10) + ", limit %d: lower DELAY_STORAGE",
			largest, storage,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) {
				c.Limits.JetStreamLimits.DiskMaxStreamBytes = n
			}},
		{"subscriptions", "subscriptions of a connection: need " + strconv.Itoa(subscriptions) + ", limit fewer",
			int64(subscriptions), 0,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) { c.Limits.Subs = n }},
		{"payload of the account", "bytes of a message: need 16384, limit %d: raise max_payload", minPayload, 0,
			func(c *jwt.AccountClaims, _ *server.Options, n int64) { c.Limits.Payload = n }},
		{"payload of the server", "bytes of a message: need 16384, limit %d: raise max_payload", minPayload, 0,
			func(_ *jwt.AccountClaims, o *server.Options, n int64) { o.MaxPayload = int32(n) }},
	} {
		for _, limit := range []int64{tt.need, tt.need - 1, max(1, tt.need/3)} {
			t.Run(fmt.Sprintf("%s %d", tt.name, limit), func(t *testing.T) {
				cfg := smallConfig(t)
				cfg.Storage = tt.storage
				streams, err := provideUnder(t, cfg, func(c *jwt.AccountClaims, o *server.Options) { tt.set(c, o, limit) })
				if limit == tt.need {
					if err != nil || streams != count {
						t.Errorf("%d streams and %v, want %d and none", streams, err, count)
					}
					return
				}
				want := tt.says
				if strings.Contains(want, "%d") {
					want = fmt.Sprintf(want, limit)
				}
				if !errors.Is(err, ErrFit) || !strings.Contains(err.Error(), want) || streams != 0 {
					t.Errorf("%d streams and %v, want none and %q", streams, err, want)
				}
			})
		}
	}
	for window, says := range map[time.Duration]string{
		30 * time.Second: "", 30*time.Second - 1: "need 30s, limit 29.999999999s: lower DELAY_DEDUP_WINDOW",
		10 * time.Second: "duplicate window: need 30s, limit 10s: lower DELAY_DEDUP_WINDOW",
	} {
		t.Run(fmt.Sprintf("duplicate window %s", window), func(t *testing.T) {
			streams, err := provideUnder(t, smallConfig(t), func(_ *jwt.AccountClaims, o *server.Options) {
				o.JetStreamLimits.Duplicates = window
			})
			if says == "" && (err != nil || streams != count) {
				t.Errorf("%d streams and %v, want %d and none", streams, err, count)
			}
			if says != "" && (!errors.Is(err, ErrFit) || !strings.Contains(err.Error(), says) || streams != 0) {
				t.Errorf("%d streams and %v, want none and %q", streams, err, says)
			}
		})
	}
	t.Run("max_bytes required", func(t *testing.T) {
		required := func(c *jwt.AccountClaims, _ *server.Options) { c.Limits.JetStreamLimits.MaxBytesRequired = true }
		cfg := smallConfig(t)
		if streams, err := provideUnder(t, cfg, required); !errors.Is(err, ErrFit) ||
			!strings.Contains(err.Error(), "set DELAY_STORAGE") || streams != 0 {
			t.Errorf("%d streams and %v, want the setting", streams, err)
		}
		cfg.Storage = storage
		if streams, err := provideUnder(t, cfg, required); err != nil || streams != count {
			t.Errorf("%d streams and %v, want %d and none", streams, err, count)
		}
	})
}

// provideUnder provisions under limits, and returns the number of streams and the error.
func provideUnder(
	t *testing.T, cfg config.Config, set func(c *jwt.AccountClaims, o *server.Options),
) (streams int, result error) {
	t.Helper()
	var o server.Options
	account := natstest.NewAccount(t, func(c *jwt.AccountClaims) { set(c, &o) })
	account.Options(&o)
	natstest.BubbleWith(t, o, func(t *testing.T, s *natstest.Server) {
		wanted, err := StreamsOf(cfg)
		natstest.NoError(t, err)
		nc := s.Connect(account.User())
		js := s.JetStream(nc)
		_, result = wanted.NewBuilder(nc, js).provide(t.Context(), true)
		info, err := js.AccountInfo(t.Context())
		natstest.NoError(t, err)
		streams = info.Streams
	})
	return streams, result
}

// TestFitOfTiers: the limits of a tier apply to the streams with its number of replicas, and count one copy.
func TestFitOfTiers(t *testing.T) {
	wanted, err := StreamsOf(smallConfig(t))
	natstest.NoError(t, err)
	want := wanted.specs(1<<20, 3)
	tier := jetstream.Tier{Limits: jetstream.AccountLimits{MaxStreams: 9, MaxStore: -1}}
	for _, tt := range []struct{ has, problem string }{
		{"R3", ""}, {"R1", "tier for 3 replicas: need R3, limit R1: set DELAY_STREAM_REPLICAS"},
	} {
		a := &jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{tt.has: tier}}
		err := Unfit(Fit(want, nil, Allowed{Account: a, MaxPayload: 1 << 20, Subscriptions: true}))
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("with %s: %v, want %q", tt.has, err, tt.problem)
		}
	}
	// All problems are reported together, also a stream of others in the way.
	tier.Limits = jetstream.AccountLimits{MaxStreams: 5, MaxBytesRequired: true, MaxStore: -1, MaxConsumers: 1}
	other := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"delay.>"}}}
	err = Unfit(Fit(want, map[string]*jetstream.StreamInfo{"AUDIT": other},
		Allowed{Account: &jetstream.AccountInfo{Tier: tier}, MaxPayload: 1000}))
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != 7 ||
		!slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "AUDIT listens on delay.>") }) {
		t.Errorf("got %d lines, want 7 with AUDIT:\n%v", len(lines), err)
	}
}
