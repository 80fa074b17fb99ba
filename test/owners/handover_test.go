package owners

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// slowService counts the requests with each body. It answers each request after a time, unless the time is zero.
type slowService struct {
	mu       sync.Mutex // guards the fields below
	wait     time.Duration
	requests map[string]int
}

func (s *slowService) serve(t *testing.T, nc *nats.Conn, subject string) {
	s.requests = make(map[string]int)
	natstest.Handle(t, nc, subject, func(m *nats.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[string(m.Data)]++
		if s.wait > 0 {
			time.AfterFunc(s.wait, func() { _ = m.Respond([]byte("done")) }) // the test ends after all answers
		}
	})
	natstest.Flush(t, nc)
}

func (s *slowService) setWait(wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = wait
}

func (s *slowService) check(t *testing.T, bodies []string, want int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range bodies {
		if s.requests[body] != want {
			t.Errorf("the service got %s %d times, want %d", body, s.requests[body], want)
		}
	}
}

// TestStopWithSilentTarget: the active instance stops while a service has not answered. A stand-by delivers to other
// targets within half a second. If the service answers within the grace period, it gets each request once. If not, the
// stand-by sends each request again, and none is lost. With a limit of deliveries in progress, the stop waits for the
// answers.
func TestStopWithSilentTarget(t *testing.T) {
	t.Parallel()
	const answer = 4 * time.Second
	for _, test := range []struct {
		name        string
		answers     bool
		limit       int
		least, most time.Duration // the bounds of the maximum lateness of other messages
		times       int           // number of times for which the service gets each request
	}{
		{name: "answers", answers: true, least: 200 * time.Millisecond, most: 250 * time.Millisecond, times: 1},
		{name: "does not answer", least: 200 * time.Millisecond, most: 250 * time.Millisecond, times: 2},
		{name: "answers, with a limit", answers: true, limit: 9, least: 3 * time.Second, most: answer, times: 1},
	} {
		natstest.Subtest(t, test.name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.MemberConfig(t)
			cfg.Timers, cfg.RetryLadder = true, harness.Ladder(t, "1s") // shorter than the wait for answers
			if test.limit > 0 {
				cfg.InProgress = deliver.Maxima{{Pattern: "svc.>", Value: test.limit}}
			}
			all := harness.StartBrokers(t, s, 2, cfg)
			c := harness.NewClient(t, s)
			service := new(slowService)
			if test.answers {
				service.wait = answer
			}
			service.serve(t, c.NC, "svc.>")
			in := c.Subscribe("orders.>")
			time.Sleep(10 * time.Second)
			harness.CheckActive(t, 0, all...)
			var asked []string
			for i, subject := range []string{"delay.1s.svc.x", "delayin.900ms.svc.y", "delaytimer.k.svc.z"} {
				asked = append(asked, fmt.Sprint("request ", i))
				header := []string{message.HeaderDeliver, "request", message.HeaderFor, "1s"}
				if i < 2 {
					header = header[:2]
				}
				c.Publish(subject, asked[i], header...)
			}
			stopped := make(chan struct{})
			time.AfterFunc(1100*time.Millisecond, func() {
				defer close(stopped)
				service.setWait(answer)
				all[0].Stop()
			})
			const others = 500
			for i := range others {
				c.Publish("delay.1s.orders.x", fmt.Sprint(i))
				time.Sleep(20 * time.Millisecond)
			}
			<-stopped
			harness.CheckActive(t, 1, all...)
			time.Sleep(time.Minute)
			service.check(t, asked, test.times)
			if worst := checkPrompt(t, in.Arrivals(), others, test.most); worst < test.least {
				t.Errorf("the maximum lateness is %s, want at least %s", worst, test.least)
			}
			c.CheckNoDead()
			c.CheckEmptyBut("DELAY_TIMERS") // it has the last entry of the timer
		})
	}
}
