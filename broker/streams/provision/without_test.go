package provision

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/streams"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// TestWithoutSomeStreams: a broker that may not create streams runs without the optional streams that are missing, logs
// each of them, and uses the other optional streams.
func TestWithoutSomeStreams(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		nc := s.Connect()
		js := s.JetStream(nc)
		ladder, err := levels.Parse("1s")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		start := func(create bool) ([]string, error) {
			log.Reset()
			wanted, err := StreamsOf(config.Config{
				Ladder: ladder, Journal: time.Hour, Timers: true, TimersOptional: true, Provision: create,
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			lanes, err := wanted.NewBuilder(nc, js).Start(t.Context())
			var names []string
			for _, l := range lanes {
				names = append(names, l.Stream)
			}
			return names, err
		}
		remove := func(stream string) {
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		}
		optional := []string{"DELAY_OWNERS", "DELAY_PAUSED", "DELAY_JOURNAL", "DELAY_TIMERS"}
		losses := []string{"agree on the active one", "no target can be paused", "no deliveries are recorded",
			"no named timer can be set"}
		for set := range 1 << len(optional) {
			if _, err := start(true); err != nil {
				t.Fatal(err)
			}
			for i, stream := range optional {
				if set&(1<<i) != 0 {
					remove(stream)
				}
			}
			lanes, err := start(false)
			if err != nil {
				t.Fatalf("without %04b: %v", set, err)
			}
			for i, stream := range optional {
				missing := set&(1<<i) != 0
				isLane := stream == "DELAY_PAUSED" || stream == "DELAY_TIMERS"
				if isLane && slices.Contains(lanes, stream) == missing {
					t.Errorf("without %04b: got the lanes %v", set, lanes)
				}
				if got := strings.Count(log.String(), losses[i]) == 1; got != missing {
					t.Errorf("without %04b: the log has the loss of %s: %v, want %v", set, stream, got, missing)
				}
			}
		}
		remove("DELAY_DEAD")
		if _, err := start(false); !errors.Is(err, streams.ErrMissingStreams) {
			t.Errorf("without dead letters: got %v, want %v", err, streams.ErrMissingStreams)
		}
	})
}
