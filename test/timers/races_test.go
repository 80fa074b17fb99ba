package timers

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/test/harness"
	"delaybroker/test/linear"
	"delaybroker/test/natstest"
)

// TestTimerRaces: within five milliseconds of the due time of a timer, clients cancel, move, replace or fire the timer,
// or set it if there is no entry. An order of events explains all answers and deliveries. So no delivery follows an
// acknowledged cancel.
func TestTimerRaces(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for name, history := range map[string]time.Duration{"without history": -1, "with history": 30 * time.Second} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			cfg.TimerHistory = history
			harness.StartBroker(t, s, cfg)
			race(t, s, 1000)
		})
	}
}

// TestManyTimerRaces runs the same races with a real server in real time. TIMER_RACES is the number of races.
// test/README.md has the command.
func TestManyTimerRaces(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("TIMER_RACES"))
	if n == 0 {
		n = 300
	}
	s := natstest.RunListening(t)
	harness.StartBroker(t, s, harness.TimerConfig(t))
	race(t, s, n)
}

// racer runs the race for one timer.
type racer struct {
	*harness.Client
	subject string
	random  *rand.Rand

	mu  sync.Mutex // guards ops
	ops []linear.Op
}

// race runs n races, at most a hundred at a time, and checks the result of each.
func race(t *testing.T, s *natstest.Server, n int) {
	t.Helper()
	const atOnce = 100
	ear, c := harness.NewClient(t, s), harness.NewClient(t, s)
	in := ear.Subscribe("orders.>")
	racers := make([]*racer, n)
	var playing sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range n {
		r := &racer{
			Client: c, subject: fmt.Sprintf("delaytimer.key.orders.%d", i), random: rand.New(rand.NewPCG(1, uint64(i))),
		}
		racers[i] = r
		free <- struct{}{}
		playing.Go(func() {
			r.play()
			<-free
		})
	}
	playing.Wait()
	for end := time.Now().Add(natstest.Timeout); harness.Pending(c, "DELAY_TIMERS") > 1 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	natstest.Flush(t, ear.NC)
	time.Sleep(100 * time.Millisecond) // the handler receives the last deliveries
	for _, a := range in.Arrivals() {
		id, err := message.ParseID(a.ID)
		var i int
		if _, bad := fmt.Sscanf(a.Subject, "orders.%d", &i); err != nil || bad != nil || a.At.Before(a.Due) {
			t.Fatalf("on %s arrived %s, due %s, at %s", a.Subject, a.ID, a.Due, a.At)
		}
		r := racers[i]
		r.ops = append(r.ops, linear.Op{
			Kind: linear.Fire, Result: linear.Done, Sequence: id.Sequence, Call: id.At, Return: a.At,
		})
	}
	outcomes := make(map[string]int)
	for _, r := range racers {
		if !linear.Explain(r.ops) {
			t.Errorf("%s: no order explains %+v", r.subject, r.ops)
		}
		for _, o := range r.ops {
			outcomes[fmt.Sprintf("%s %t", o.Kind, o.Sequence > 0)]++
		}
	}
	t.Log(outcomes)
	for _, o := range []string{"set true", "set false", "cancel true", "cancel false", "fire true"} {
		if outcomes[o] == 0 {
			t.Errorf("none of %d races ends with %s", n, o)
		}
	}
}

// play sets a timer. Around its due time, up to three operations change the timer. About 30 ms later, up to three more
// operations change it.
func (r *racer) play() {
	const wait = 60 * time.Millisecond
	due := time.Now().Add(wait)
	g := r.do(linear.Set, 0, wait)
	for range 2 {
		moved := make([]uint64, 1+r.random.IntN(3))
		var racing sync.WaitGroup
		for i := range moved {
			at := due.Add(time.Duration(r.random.IntN(11)-5) * time.Millisecond)
			choice := r.random.IntN(5)
			racing.Go(func() {
				time.Sleep(time.Until(at))
				switch choice {
				case 0:
					r.do(linear.Cancel, int64(g), 0)
				case 1:
					moved[i] = r.do(linear.Set, int64(g), 30*time.Millisecond)
				case 2:
					r.do(linear.Set, int64(g), 0)
				case 3:
					moved[i] = r.do(linear.Set, -1, 30*time.Millisecond)
				case 4:
					r.do(linear.Set, 0, 30*time.Millisecond)
				}
			})
		}
		racing.Wait()
		due = time.Now().Add(30 * time.Millisecond)
		for _, m := range moved {
			g = max(g, m)
		}
	}
}

// do carries out one operation, and records its result. It returns the sequence of the new entry, or zero if the server
// refused the operation.
func (r *racer) do(kind linear.Kind, expects int64, wait time.Duration) uint64 {
	m := &nats.Msg{Subject: r.subject, Header: nats.Header{}, Data: []byte("x")}
	if expects >= 0 {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatInt(expects, 10))
	}
	if kind == linear.Cancel {
		m.Header.Set("Delay-Cancel", "1")
	} else {
		m.Header.Set("Delay-For", fmt.Sprintf("%dms", wait.Milliseconds()))
	}
	o := linear.Op{Kind: kind, Expects: expects, Result: linear.Done, Call: time.Now()}
	o.Sequence = r.StoreIf(m)
	o.Return = time.Now()
	if o.Sequence == 0 {
		o.Result = linear.Refused
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
	return o.Sequence
}
