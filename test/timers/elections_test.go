package timers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/client"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestCancelDuringElections: on a cluster of three servers, the leader of the stream of timers steps down repeatedly.
// Around each of these times, the Go client cancels timers: early ones, which are due in an hour, close ones, which are
// due at about that time, and late ones, which have arrived. If the answer is that the cancel was in time, the timer
// does not arrive. If the answer is that it was not, the timer arrives once.
func TestCancelDuringElections(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	const (
		elections = 9
		interval  = jetstream.DefaultPubRetryWait // a repeated publish may meet the next election, and the one after it
		ofAKind   = 12                            // number of early timers at each election, and of close and late ones
	)
	e := newElectionScene(t)
	begin := time.Now().Add(500 * time.Millisecond) // the sets take less, unless the machine is busy
	electionAt := func(i int) time.Time { return begin.Add(time.Duration(i) * interval) }
	at := make([][]*cancelledTimer, elections)
	var setting sync.WaitGroup
	for i := range at {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		add := func(body string, due time.Time) {
			at[i] = append(at[i], &cancelledTimer{
				body: body, due: due, wait: around(random), pending: random.IntN(2) == 0, hasty: random.IntN(4) == 0,
			})
		}
		for n := range ofAKind {
			add(fmt.Sprintf("early-%d-%d", i, n), begin.Add(time.Hour))
			add(fmt.Sprintf("close-%d-%d", i, n), electionAt(i).Add(around(random)))
			add(fmt.Sprintf("late-%d-%d", i, n), begin.Add(-time.Hour))
		}
		setting.Go(func() { e.set(at[i], e.clients[i%len(e.clients)]) })
	}
	setting.Wait()
	natstest.Await(t, "all late timers have arrived", func() bool {
		return strings.Count(harness.Bodies(e.Arrivals("ORDERS")), "late") == elections*ofAKind
	})
	var cancelling sync.WaitGroup
	for i, timers := range at {
		time.Sleep(time.Until(electionAt(i)))
		for _, c := range timers {
			cancelling.Go(c.cancel)
		}
		time.Sleep(electionTime / 2)
		e.elect()
	}
	cancelling.Wait()
	e.check(slices.Concat(at...))
}

// electionTime is the time within which the cancels at an election begin. The leader steps down in the middle.
const electionTime = 20 * time.Millisecond

func around(random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(electionTime)))
}

// electionScene is three servers with a broker, and a client of each server.
type electionScene struct {
	*harness.Client
	servers []*server.Server
	clients []*client.Client
}

func newElectionScene(t *testing.T) *electionScene {
	t.Helper()
	cluster := natstest.RunCluster(t, func() server.Options { return server.Options{} })
	natstest.StartBroker(t, "NATS_URL="+cluster.URL, "DELAY_STREAM_REPLICAS=3", "DELAY_PROVISION=create",
		"DELAY_TIMERS=on", "DELAY_LEVELS=1s,1h")
	e := &electionScene{servers: cluster.Servers}
	for _, s := range cluster.Servers {
		nc, err := nats.Connect(s.ClientURL())
		natstest.NoError(t, err)
		t.Cleanup(nc.Close)
		e.Client = harness.WrapConn(t, nc)
		delays, err := client.New(e.JS, client.Config{})
		natstest.NoError(t, err)
		e.clients = append(e.clients, delays)
	}
	e.Target("ORDERS", "orders.>")
	return e
}

// set sets timers, one after the other.
func (e *electionScene) set(timers []*cancelledTimer, delays *client.Client) {
	for _, c := range timers {
		ctx, cancel := context.WithTimeout(e.T.Context(), natstest.Timeout)
		var err error
		c.client = delays
		c.receipt, err = delays.At(ctx, electionTarget, c.due, []byte(c.body), client.Cancelable())
		cancel()
		if err != nil {
			e.T.Errorf("set %s: %v", c.body, err)
		}
	}
}

// elect makes the leader of the stream of timers step down, until another server leads.
func (e *electionScene) elect() {
	e.T.Helper()
	var before *server.Server
	natstest.Await(e.T, "another server leads the stream of timers", func() bool {
		i := slices.IndexFunc(e.servers, func(s *server.Server) bool {
			return s.JetStreamIsStreamLeader("$G", "DELAY_TIMERS")
		})
		switch {
		case i < 0:
			return false
		case before == nil:
			before = e.servers[i]
		case before != e.servers[i]:
			return true
		}
		request := &nats.Msg{Subject: "$JS.API.STREAM.LEADER.STEPDOWN.DELAY_TIMERS"}
		_, _ = natstest.Request(e.NC, request, time.Second) // ignored: Await asks again
		return false
	})
}

// check waits until all timers have ended, and compares their states and the arrivals with the answers.
func (e *electionScene) check(timers []*cancelledTimer) {
	e.T.Helper()
	count := make(map[answer]int)
	for _, c := range timers {
		count[c.answer]++
		if !strings.HasPrefix(c.body, "early") {
			continue
		}
		if again := c.ask(natstest.Timeout); again == inTime && c.answer == inTime { // it also ends a timer in doubt
			e.T.Errorf("after the answer %q, %s was still pending", c.answer, c.body)
		}
	}
	e.T.Log(count)
	certain := count[inTime] + count[notInTime]
	if certain < len(timers)/3 || count[inTime] == 0 || count[notInTime] == 0 {
		e.T.Errorf("the answers to %d cancels are %v: the run proves little", len(timers), count)
	}
	for _, c := range timers {
		var state client.State
		natstest.Await(e.T, c.body+" has ended", func() bool {
			state = c.state()
			return state != client.StatePending && state != client.StateFired
		})
		cancelled := state == client.StateCancelled
		if c.answer != inDoubt && state != client.StateNone && cancelled != (c.answer == inTime) {
			e.T.Errorf("after the answer %q, the state of %s is %q", c.answer, c.body, state)
		}
	}
	var came map[string]int
	missing := func(c *cancelledTimer) bool { return c.answer == notInTime && came[c.body] == 0 }
	for end := time.Now().Add(natstest.Timeout); ; time.Sleep(100 * time.Millisecond) {
		came = make(map[string]int)
		for _, a := range e.Arrivals("ORDERS") {
			came[a.Body]++
		}
		if e.T.Failed() || !slices.ContainsFunc(timers, missing) || time.Now().After(end) {
			break
		}
	}
	for _, c := range timers {
		if n := came[c.body]; n > 1 || c.answer == inTime && n > 0 || missing(c) {
			e.T.Errorf("after the answer %q, %s arrived %d times", c.answer, c.body, n)
		}
	}
	e.CheckNoDead()
}

// answer is the answer to a cancel.
type answer string

const (
	inTime    answer = "in time"
	notInTime answer = "not in time"
	inDoubt   answer = "in doubt"
)

const electionTarget = "orders.x"

// cancelledTimer is a timer that a client cancels.
type cancelledTimer struct {
	body    string
	due     time.Time
	wait    time.Duration // before the cancel
	pending bool          // the cancel is CancelPending
	hasty   bool          // the cancel may take only as long as the wait

	client  *client.Client
	receipt client.Receipt
	answer  answer
}

// cancel cancels the timer after its wait.
func (c *cancelledTimer) cancel() {
	time.Sleep(c.wait)
	within := natstest.Timeout
	if c.hasty {
		within = c.wait
	}
	c.answer = c.ask(within)
}

// ask cancels the timer. It repeats a cancel that has stored nothing.
func (c *cancelledTimer) ask(within time.Duration) answer {
	for ; ; within = natstest.Timeout {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		var cancelled bool
		var err error
		if c.pending {
			cancelled, err = c.client.CancelPending(ctx, c.receipt.Key, electionTarget)
		} else {
			cancelled, err = c.receipt.Cancel(ctx)
		}
		cancel()
		switch {
		case errors.Is(err, client.ErrUnanswered):
			return inDoubt
		case err != nil: // nothing is stored
		case cancelled:
			return inTime
		default:
			return notInTime
		}
	}
}

// state reads the state of the timer. Without an answer, it returns StatePending.
func (c *cancelledTimer) state() client.State {
	got, err := c.client.Timer(context.Background(), c.receipt.Key, electionTarget)
	if err != nil {
		return client.StatePending
	}
	return got.State
}
