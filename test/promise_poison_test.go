package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// TestPoison publishes messages of kinds that have harmed consumers, brokers or targets elsewhere, with healthy traffic
// beside them. Each poisonous message is delivered without the harmful part, or becomes a dead letter with a reason.
// The healthy messages are on time.
func TestPoison(t *testing.T) {
	t.Parallel()
	// The server accepts subjects of 5,000 bytes. With its defaults it would close the connection of the publisher.
	bubble(t, server.Options{MaxControlLine: 16 << 10}, func(t *testing.T, s *natstest.Server) {
		startBroker(t, s, broker.Config{HeaderTargets: []string{"headers.ok"}})
		c := newClient(t, s)
		c.target("ORDERS", "orders.>")
		start := time.Now()
		raw := dialRaw(t, s)

		dead := map[string]int{} // what each code should count
		bad := func(code message.Code, subject, body string, headers ...string) {
			t.Helper()
			c.publish(subject, body, headers...)
			dead[string(code)]++
		}
		clean := func(subject string, block string) {
			t.Helper()
			raw.publish(subject, block, "clean")
		}
		wantClean := 0

		// Empty bodies, with headers that look like a status of the server.
		for _, status := range []string{"100", "404", "408", "409", "503", "409 Consumer Deleted",
			"409 Server Shutdown"} {
			clean("delay.1s.orders.clean", "NATS/1.0\r\nStatus: "+status+
				"\r\nDescription: Consumer Deleted\r\nNats-Pending-Messages: 500\r\n\r\n")
			raw.publish("delay.1s.orders.clean", "NATS/1.0 "+status+"\r\n\r\n", "")
			wantClean += 2
		}
		// Headers that cannot be parsed: to ignore them would lose a Delay-Until.
		for _, block := range []string{"NATS/1.0\r\nDelay-Until: 2030-01-01T00:00:00Z\r\nno colon\r\n\r\n",
			"NATS/1.0\r\n\xff\xfe\r\n\r\n", "NATS/1.0\r\nDelay-Until 2030\r\n\r\n"} {
			raw.publish("delay.1s.orders.bad", block, "bad")
			dead[string(message.BadHeaders)]++
		}
		bad(message.BadHeaders, "delay.1s.orders.bad", "many", manyHeaders(65)...)
		bad(message.BadHeaders, "delay.1s.orders.bad", "large", "X-Large", strings.Repeat("x", 9000))
		raw.publish("delay.1s.orders.bad", "NATS/1.0\r\nX(y): z\r\n\r\n", "bad key")
		dead[string(message.BadHeaders)]++

		// Targets that are too long for the protocol, and requests without a target.
		raw.publish("delay.1s."+strings.Repeat("x", 5000), "", "long")
		dead[string(message.BadTarget)]++
		bad(message.BadTarget, "delay.1s", "bare")
		bad(message.BadTarget, "delay.1s", "bare", message.HeaderTarget, "orders.notlisted")
		named := c.subscribe("headers.ok")
		c.publish("delay.1s", "clean", message.HeaderTarget, "headers.ok")

		// Times that cannot be parsed, or occur twice.
		for _, subject := range []string{"delayat.1732060800.123.orders.x", "delayin.1.5s.orders.x",
			"delayat.2000-01-02T00:00:00.000Z.orders.x", "delayin.soon.orders.x",
			"delayin.15.orders.x", "delayat.2000-01-02T00:00:00.orders.x", "delayin.1h30.orders.x",
			"delayat.tomorrow.orders.x"} {
			bad(message.BadTime, subject, "bad")
		}
		bad(message.TooFar, "delayat.4102444800.orders.x", "bad")
		bad(message.TimeTwice, "delayin.1s.orders.x", "bad", message.HeaderUntil, "2000-01-02T00:00:00Z")
		bad(message.TimeTwice, "delay.1s.orders.x", "bad", message.HeaderUntil, "2000-01-02T00:00:00Z", "delay-until",
			"2000-01-03T00:00:00Z")
		bad(message.UntilEarly, "delay.1h.orders.x", "bad", message.HeaderUntil, "2000-01-01T00:00:05Z")
		bad(message.BadOption, "delay.1s.orders.x", "bad", message.HeaderDeliver, "pigeon")

		// State forged on an internal subject, by a user with too many rights.
		bad(message.BadInternal, "delaysys.hop.1s.orders.x", "bad")
		bad(message.BadInternal, "delaysys.hop.1s.orders.x", "bad", message.HeaderID, "x", message.HeaderDue,
			"2000-01-01T00:00:00Z")

		// Healthy traffic beside it.
		const healthy = 200
		for i := range healthy {
			c.publish("delay.1s.orders.healthy", fmt.Sprint("healthy", i))
		}
		for i, ok := range raw.accepted() {
			if !ok {
				t.Errorf("raw message %d was not stored", i)
			}
		}
		time.Sleep(time.Minute)

		got := c.arrivals("ORDERS")
		nHealthy, nClean := 0, 0
		for _, a := range got {
			switch a.Subject {
			case "orders.healthy":
				nHealthy++
				if want := start.Add(time.Second); !a.At.Equal(want) {
					t.Errorf("%s came at %s, want %s", a.Body, a.At, want)
				}
			case "orders.clean":
				nClean++
				for _, k := range []string{"Status", "Description", "Nats-Pending-Messages"} {
					if a.Header.Get(k) != "" {
						t.Errorf("the reserved header %s: %s came through", k, a.Header.Get(k))
					}
				}
				if !a.Due.Equal(start.Add(time.Second)) {
					t.Errorf("%s says it was due %s, want %s", a.ID, a.Due, start.Add(time.Second))
				}
			default:
				t.Errorf("%q came on %s", a.Body, a.Subject)
			}
		}
		if nHealthy != healthy || nClean != wantClean {
			t.Errorf("%d healthy and %d clean messages arrived, want %d and %d", nHealthy, nClean, healthy, wantClean)
		}
		if got := bodies(named.all()); got != "clean" {
			t.Errorf("on the subject that a header may name came %q", got)
		}
		letters := c.dead()
		for code, want := range dead {
			if got := len(letters[code]); got != want {
				t.Errorf("%d dead letters %s, want %d", got, code, want)
			}
		}
		for code, all := range letters {
			for _, a := range all {
				if a.Header.Get(message.HeaderError) == "" || a.Header.Get(message.HeaderSubject) == "" || a.ID == "" {
					t.Errorf("the dead letter %s on %s lacks a sentence, its subject or its id: %v", code, a.Subject,
						a.Header)
				}
			}
			if dead[code] == 0 {
				t.Errorf("%d dead letters %s, want none: %s", len(all), code, all[0].Header.Get(message.HeaderError))
			}
		}
		c.checkEmptyLanes()
	})
}

// checkEmptyLanes is checkEmpty without the stream of dead letters.
func (c *client) checkEmptyLanes() {
	c.t.Helper()
	for info := range c.js.ListStreams(context.Background()).Info() {
		if kind := info.Config.Metadata["delaybroker.kind"]; kind != "" && kind != "dead" && info.State.Msgs > 0 {
			c.t.Errorf("%s still holds %d messages", info.Config.Name, info.State.Msgs)
		}
	}
}

func manyHeaders(n int) []string {
	var h []string
	for i := range n {
		h = append(h, fmt.Sprintf("X-%d", i), "v")
	}
	return h
}
