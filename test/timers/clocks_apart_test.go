package timers

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/test/harness"
	"delaybroker/test/natstest"
)

// This file tests servers whose clocks differ: see package leader.

// apart returns how far the clock of a stream's leader is ahead of the true time.
type apart func(stream string) time.Duration

// startApart runs a broker for which the clocks of the streams' leaders differ.
func startApart(t *testing.T, s *natstest.Server, cfg broker.Config, ahead apart) {
	t.Helper()
	asker := s.Connect(nats.Name("asker"))
	cfg.APIPrefix = natstest.Proxy(t, s, func(question string, m *nats.Msg) bool {
		i := strings.LastIndexByte(question, '.')
		kind, stream := question[:max(i, 0)], question[i+1:]
		if kind != "STREAM.INFO" && kind != "STREAM.MSG.GET" || ahead(stream) == 0 {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		answer, err := asker.RequestWithContext(ctx, "$JS.API."+question, m.Data)
		if err == nil { // without an answer the server is stopping
			_ = m.Respond(restamp(answer.Data, ahead(stream)))
		}
		return true
	})
	harness.StartBroker(t, s, cfg, nats.SetCustomDialer(skewedDialer{s, ahead}))
}

// stamps matches the timestamps of a stream's leader in answers of JetStream.
var stamps = regexp.MustCompile(`("(?:ts|created|first_ts|last_ts|time)":")([^"]+)"`)

// restamp shifts the timestamps in an answer, except for the zero time.
func restamp(answer []byte, by time.Duration) []byte {
	return stamps.ReplaceAllFunc(answer, func(field []byte) []byte {
		part := stamps.FindSubmatch(field)
		at, err := time.Parse(time.RFC3339Nano, string(part[2]))
		if err != nil || at.Year() == 1 {
			return field
		}
		return fmt.Appendf(nil, `%s%s"`, part[1], at.Add(by).Format(time.RFC3339Nano))
	})
}

// skewedDialer makes connections that shift the timestamps of delivered messages to the clocks of the leaders.
type skewedDialer struct {
	*natstest.Server
	ahead apart
}

func (d skewedDialer) Dial(network, address string) (net.Conn, error) {
	nc, err := d.Server.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &skewedConn{Conn: nc, ahead: d.ahead}, nil
}

// skewedConn changes the timestamps in the reply subjects of stored messages.
type skewedConn struct {
	net.Conn
	ahead apart
	ready []byte // bytes that Read has not returned
	tail  []byte // an incomplete reply subject at the end of the received bytes
}

var ackReply = regexp.MustCompile(`(\$JS\.ACK\.)([^. ]+)(\.[^. ]+\.\d+\.\d+\.\d+\.)(\d{18,19})(\.\d+[ \r])`)

func (c *skewedConn) Read(p []byte) (int, error) {
	for len(c.ready) == 0 {
		part := make([]byte, 64<<10)
		n, err := c.Conn.Read(part)
		if err != nil {
			return 0, err
		}
		all := append(c.tail, part[:n]...)
		whole := len(all)
		if i := strings.LastIndexByte(string(all), '$'); i >= 0 && !strings.ContainsAny(string(all[i:]), " \r") {
			whole = i
		}
		c.tail = append([]byte(nil), all[whole:]...)
		c.ready = ackReply.ReplaceAllFunc(all[:whole], func(reply []byte) []byte {
			part := ackReply.FindSubmatch(reply)
			at, _ := strconv.ParseInt(string(part[4]), 10, 64)
			return fmt.Appendf(nil, "%s%s%s%d%s", part[1], part[2], part[3], at+int64(c.ahead(string(part[2]))), part[5])
		})
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// TestClocksOfServersApart: the leaders' clocks differ by a second or two. No message is early by the clock of the
// stream in which it is due. By the true time, its lateness is the difference between the clock that stamped its due
// time and that clock, so a message may be early. The number of streams on its way does not matter. Each message
// arrives once.
func TestClocksOfServersApart(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	for _, ahead := range [][2]time.Duration{{0, time.Second}, {0, -time.Second}, {time.Second, -time.Second},
		{-time.Second, time.Second}} {
		stamps, levels := ahead[0], ahead[1]
		name := fmt.Sprintf("due by %+d s, levels by %+d s", stamps/time.Second, levels/time.Second)
		natstest.Subtest(t, name, func(t *testing.T, s *natstest.Server) {
			startApart(t, s, harness.TimerConfig(t), func(stream string) time.Duration {
				switch stream {
				case "DELAY_INTAKE", "DELAY_TIMERS", "DELAY_PAUSED":
					return stamps
				case "DELAY_DEAD", "DELAY_OWNERS":
					return 0
				}
				return levels
			})
			checkClocksApart(t, s, stamps-levels)
		})
	}
}

// checkClocksApart publishes delays, timers and series. It expects the lateness that follows from the clock of the last
// level on the message's way.
func checkClocksApart(t *testing.T, s *natstest.Server, late time.Duration) {
	t.Helper()
	time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
	c, o := harness.NewClient(t, s), harness.Operator(t, s)
	in, paused := c.Subscribe("orders.>"), c.Subscribe("mail.>")
	harness.MustPause(t, o, "mail.>")
	start := time.Now()
	want := make(map[string][]time.Duration)
	for _, delay := range []string{"13m27s", "71s", "12345ms"} {
		d, err := time.ParseDuration(delay)
		natstest.NoError(t, err)
		c.Publish("delayin."+delay+".orders.delay", "delay of "+delay)
		c.Publish("delaytimer."+delay+".orders.timer", "timer of "+delay, "Delay-For", delay)
		want["delay of "+delay], want["timer of "+delay] = []time.Duration{d + late}, []time.Duration{d + late}
	}
	c.Publish("delay.10s.orders.level", "one level")
	want["one level"] = []time.Duration{10 * time.Second}
	c.Publish("delaytimer.short.orders.timer", "without a level", "Delay-For", "700ms")
	want["without a level"] = []time.Duration{700 * time.Millisecond}
	c.Publish("delaytimer.fast.orders.series", "every 1s", "Delay-Every", "1s", "Delay-Rounds", "20")
	want["every 1s"] = harness.RoundTimes(time.Second, time.Second, 20)
	c.Publish("delaytimer.slow.orders.series", "every 90s", "Delay-Every", "90s", "Delay-Rounds", "8")
	want["every 90s"] = harness.RoundTimes(90*time.Second+late, 90*time.Second, 8)
	c.Publish("delaytimer.skip.orders.series", "every 7s", "Delay-Every", "7s", "Delay-Rounds", "8",
		"Delay-Missed-Rounds", "skip")
	want["every 7s"] = harness.RoundTimes(7*time.Second+late, 7*time.Second, 8)
	c.Publish("delayin.12345ms.mail.x", "paused")
	c.Publish("delayin.40s.mail.x", "paused and due afterwards")
	time.Sleep(30 * time.Second)
	synctest.Wait()
	harness.CheckBodies(t, paused.Arrivals(), "")
	harness.MustResume(t, o, "mail.>")
	time.Sleep(20 * time.Minute)
	synctest.Wait()
	harness.CheckBodies(t, paused.Arrivals(), "paused paused and due afterwards")
	came := make(map[string][]time.Duration)
	for _, a := range in.Arrivals() {
		came[a.Body] = append(came[a.Body], a.At.Sub(start))
	}
	for body := range want {
		if !slices.Equal(came[body], want[body]) {
			t.Errorf("%s arrived after %s, want %s", body, came[body], want[body])
		}
	}
	c.CheckNoTimersBut("DELAY_PAUSED")
	c.CheckNoDead()
}
