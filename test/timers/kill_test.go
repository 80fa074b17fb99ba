package timers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// TestTimersOnKill kills the broker together with its server, during sets, cancels and moves. After an acknowledged
// cancel or move, the body of the first set does not arrive. If the stream refused the cancel or move, or there was
// none, the body arrives once.
func TestTimersOnKill(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	address := natstest.FreeAddress(t)
	env := []string{"DELAY_EMBEDDED_DIR=" + natstest.Dir(t), "DELAY_EMBEDDED_LISTEN=" + address, "NATS_URL=",
		"DELAY_TIMERS=on", "DELAY_TIMER_HISTORY=none", "DELAY_LEVELS=1s,5s"}
	p := natstest.StartBroker(t, env...)
	c := harness.NewReconnectingClient(t, address)
	c.Target("ORDERS", "orders.>")
	fates := &fates{Client: c, of: make(map[string]fate)}
	ctx, stop := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	for player := range 20 {
		playing.Go(func() { fates.play(ctx, player) })
	}
	const kills = 2
	for range kills {
		time.Sleep(1200 * time.Millisecond)
		p.Crash()
		p = natstest.StartBroker(t, env...)
	}
	time.Sleep(600 * time.Millisecond)
	stop()
	playing.Wait()
	fates.check()
	p.Terminate()
}

// fate is the expected result of a body.
type fate int

const (
	unknownFate fate = iota // a request without an answer may have changed the result
	comes
	never
)

// fates has the expected results of all bodies.
type fates struct {
	*harness.Client

	mu sync.Mutex // guards of
	of map[string]fate
}

func (f *fates) note(body string, is fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[body] = is
}

// play sets timers, and cancels or moves some of them around their due times, until ctx ends.
func (f *fates) play(ctx context.Context, player int) {
	random := rand.New(rand.NewPCG(1, uint64(player)))
	for i := 0; ctx.Err() == nil; i++ {
		subject := fmt.Sprintf("delaytimer.%d-%d.orders.x", player, i)
		first, second := subject+" first", subject+" second"
		wait := time.Duration(50+random.IntN(400)) * time.Millisecond
		g, err := f.publishTimer(subject, first, 0, "Delay-For", fmt.Sprintf("%dms", wait.Milliseconds()))
		if err != nil {
			f.note(first, unknownFate)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		f.note(first, comes)
		time.Sleep(wait + time.Duration(random.IntN(41)-40)*time.Millisecond)
		var verdict uint64
		switch random.IntN(3) {
		case 0:
			continue
		case 1:
			if verdict, err = f.publishTimer(subject, "", g, "Delay-Cancel", "x"); err == nil && verdict > 0 {
				f.note(first, never)
			}
		case 2:
			if verdict, err = f.publishTimer(subject, second, g, "Delay-For", "300ms"); err == nil && verdict > 0 {
				f.note(first, never)
				f.note(second, comes)
			}
		}
		if err != nil {
			f.note(first, unknownFate)
			f.note(second, unknownFate)
		}
	}
}

// publishTimer publishes a set, move or cancel. It returns the sequence of the stored message, or zero if the last
// entry has another generation.
func (f *fates) publishTimer(subject, body string, expects uint64, header, value string) (uint64, error) {
	m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{header: {value}}}
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(expects, 10))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	ack, err := f.JS.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && api.ErrorCode == 10071 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// missing returns the number of bodies that must arrive and have not arrived.
func (f *fates) missing() int {
	came := make(map[string]bool)
	for _, a := range f.Arrivals("ORDERS") {
		came[a.Body] = true
	}
	n := 0
	for body, is := range f.of {
		if is == comes && !came[body] {
			n++
		}
	}
	return n
}

// check waits until all bodies that must arrive have arrived, and compares the arrivals with the fates.
func (f *fates) check() {
	f.T.Helper()
	for end := time.Now().Add(natstest.Timeout); f.missing() > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(2 * time.Second) // time in which timers that must not fire would fire
	came := make(map[string]int)
	for _, a := range f.Arrivals("ORDERS") {
		if came[a.Body]++; a.At.Before(a.Due) {
			f.T.Errorf("%s arrived %s early", a.Body, a.Due.Sub(a.At))
		}
	}
	count := make(map[fate]int)
	for body, is := range f.of {
		count[is]++
		switch n := came[body]; {
		case n > 1:
			f.T.Errorf("%s is stored %d times", body, n)
		case is == comes && n == 0:
			f.T.Errorf("%s was not cancelled or moved, but did not arrive", body)
		case is == never && n > 0:
			f.T.Errorf("%s arrived, although the server acknowledged its cancel or move", body)
		}
	}
	f.T.Logf("%d bodies arrived as expected, %d were cancelled or moved, %d are unknown",
		count[comes], count[never], count[unknownFate])
	if count[comes] < 20 || count[never] < 20 {
		f.T.Errorf("only %d bodies must arrive and only %d must not: the run proves little", count[comes], count[never])
	}
	f.CheckNoDead()
}

// TestCleanStopSettlesTimers: when a clean stop begins, the broker cannot remove the entries of a delivered timer. If
// it can before the stop ends, the next broker does not send the timer again. Otherwise, Run returns ErrGrace.
func TestCleanStopSettlesTimers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		headers []string
		refused time.Duration // from the beginning of the stop until the stream accepts deletes
		end     error
	}{
		"once":      {[]string{"Delay-For", "2s"}, time.Second, nil},
		"recurring": {[]string{"Delay-Every", "1h", "Delay-For", "2s"}, time.Second, nil},
		"never":     {[]string{"Delay-For", "2s"}, time.Minute, broker.ErrGrace},
	} {
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			cfg := harness.TimerConfig(t)
			refusing := harness.Intercept(t, s, &cfg, "STREAM.MSG.DELETE.", func(m *nats.Msg) {
				_ = m.Respond([]byte(`{"error":{"code":503,"err_code":10008,"description":"temporarily unavailable"}}`))
			})
			b, c := harness.Start(t, s, cfg)
			in := c.Subscribe("orders.>")
			c.Publish("delaytimer.k.orders.x", "body", tt.headers...)
			time.Sleep(1500 * time.Millisecond)
			refusing.Store(true)
			time.Sleep(700 * time.Millisecond) // the timer is delivered
			time.AfterFunc(tt.refused, func() { refusing.Store(false) })
			b.Ended = true
			b.Cancel()
			if err := <-b.Done; !errors.Is(err, tt.end) {
				t.Errorf("the stop ends with %v, want %v", err, tt.end)
			}
			b.Close()
			if tt.end != nil {
				return
			}
			harness.StartBroker(t, s, cfg)
			time.Sleep(time.Minute)
			synctest.Wait()
			harness.CheckCount(t, in.Arrivals(), 1)
		})
	}
}
