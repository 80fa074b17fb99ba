package page

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/inspect"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestFindKey: the server does not answer scans of the lanes, as if they were too long. A key may have the form of a
// part of a Delay-Id. The search finds the timer with this key, does not look for such a message, and says that there
// may be more. It does not say that it failed.
func TestFindKey(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := harness.TimerConfig(t)
		_, c := harness.Start(t, s, cfg)
		for _, key := range []string{"order-122", "order-123"} {
			c.Publish("delaytimer."+key+".orders.remind", "x", "Delay-For", "1h")
		}
		c.Publish("delay.1h.orders.expire", "x")
		time.Sleep(time.Second)
		cfg.APIPrefix = natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			return strings.HasPrefix(question, "CONSUMER.") && !strings.Contains(question, "DELAY_TIMERS")
		})
		p := newPage(Access{OpenRows: true})
		p.cfg.Open = func(context.Context) (*inspect.Inspector, error) { return inspect.Open(s.Connect(), cfg) }
		for _, tt := range []struct {
			part    string // of the search; empty for all
			found   bool   // the timer
			partial bool
			within  time.Duration
		}{
			{"", true, true, 4 * partTimeout}, {"timers ls", true, false, time.Second}, {"where", false, false, time.Second},
		} {
			var got struct {
				Parts   map[string]struct{ Rows []struct{ Key string } }
				Partial bool
				Trouble []string
			}
			began := time.Now()
			answer := call(p, "GET", "/api/find?find=order-123&part="+url.QueryEscape(tt.part), "")
			natstest.NoError(t, json.Unmarshal(answer.Body.Bytes(), &got))
			rows := got.Parts["timers ls"].Rows
			found := len(rows) == 1 && rows[0].Key == "order-123"
			if found != tt.found || got.Partial != tt.partial || len(got.Trouble) > 0 || time.Since(began) > tt.within {
				t.Errorf("part %q: after %v, got %s", tt.part, time.Since(began), answer.Body)
			}
		}
	})
}
