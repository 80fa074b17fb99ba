package schedules

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// slowRequests runs f with a broker that needs a second for each request with a TTL. Send sends a number of requests
// with these headers, and returns the inbox of their answers.
func slowRequests(t *testing.T, f func(send func(n int, subject string, headers ...string) *harness.Inbox)) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		harness.StartBroker(t, s, broker.Config{
			Timers: true, Schedules: message.ParseScheduleRules("schedules.>=orders.>,schedules.>=mail.>", nil),
			APIPrefix: natstest.Proxy(t, s, func(question string, m *nats.Msg) bool { // only a TTL needs this request
				return question == "STREAM.LIST" && strings.Contains(string(m.Data), "orders.x")
			}),
		})
		c := harness.NewClient(t, s)
		f(func(n int, subject string, headers ...string) *harness.Inbox {
			reply := c.NC.NewInbox()
			in := c.Subscribe(reply)
			for n := range n {
				m := harness.NewMsg(strings.ReplaceAll(subject, "N", fmt.Sprint(n)), "hi",
					append(headers, "Nats-Schedule", "@every 1h", "Nats-Schedule-Target", "orders.x")...)
				m.Reply = reply
				natstest.NoError(t, c.NC.PublishMsg(m))
			}
			natstest.Flush(t, c.NC)
			synctest.Wait()
			return in
		})
	})
}

// checkRefused checks the number of answers, and how many of them refuse the request because too many wait.
func checkRefused(t *testing.T, in *harness.Inbox, answers, refused int) {
	t.Helper()
	synctest.Wait()
	n := 0
	for _, a := range in.Arrivals() {
		if strings.Contains(a.Body, "too many requests") {
			n++
		}
	}
	if got := len(in.Arrivals()); got != answers || n != refused {
		t.Errorf("%d requests are answered, and %d of them refused; want %d and %d", got, n, answers, refused)
	}
}

// TestSlowRequestsDelayNoOthers: a request that takes a second delays no request about another schedule. Sixty-four
// such requests of one tenant delay no request of another. Those that have waited for half of their timeout are
// refused.
func TestSlowRequestsDelayNoOthers(t *testing.T) {
	t.Parallel()
	slowRequests(t, func(send func(n int, subject string, headers ...string) *harness.Inbox) {
		slow := send(3, "schedules.att.slow", "Nats-Schedule-TTL", "1m")
		checkRefused(t, send(64, "schedules.att.N"), 64, 0)
		checkRefused(t, slow, 0, 0)
		time.Sleep(3 * time.Second)
		checkRefused(t, slow, 3, 0)

		slow = send(64, "schedules.att.N", "Nats-Schedule-TTL", "1m")
		checkRefused(t, send(64, "schedules.vic.N"), 64, 0)
		time.Sleep(5 * time.Second)
		checkRefused(t, slow, 64, 64-3*share)
	})
}

// share is the number of requests of one tenant that a broker carries out concurrently.
const share = 12

// TestSchedulesFlood: if the queue is full, the broker refuses a request immediately, and does not store it. A tenant
// with fewer requests finds room.
func TestSchedulesFlood(t *testing.T) {
	t.Parallel()
	slowRequests(t, func(send func(n int, subject string, headers ...string) *harness.Inbox) {
		const room = 512
		flood := []*harness.Inbox{
			send(300, "schedules.att.a", "Nats-Schedule-TTL", "1m"), send(300, "schedules.att.a", "Nats-Schedule-TTL", "1m"),
		}
		checkRefused(t, flood[0], 0, 0)
		checkRefused(t, flood[1], 600-room-1, 600-room-1)
		checkRefused(t, send(10, "schedules.vic.N"), 10, 0)
		time.Sleep(5 * time.Second)
		checkRefused(t, flood[0], 300, 297) // one is carried out each second
		checkRefused(t, flood[1], 300, 300)
	})
}
