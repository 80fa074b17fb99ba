package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// This file has the events of a scene.

// publish stores n messages.
func (sc *scene) publish(n int, subject string, headers ...string) {
	sc.t.Helper()
	for range n {
		m := nats.NewMsg(subject)
		for i := 0; i < len(headers); i += 2 {
			m.Header.Set(headers[i], headers[i+1])
		}
		if _, err := sc.js.PublishMsgAsync(m, jetstream.WithStallWait(natstest.Timeout)); err != nil {
			sc.t.Fatal(err)
		}
	}
	<-sc.js.PublishAsyncComplete()
}

// addConsumer creates a consumer that belongs to no broker.
func (sc *scene) addConsumer(stream string) {
	sc.t.Helper()
	if _, err := sc.js.CreateConsumer(sc.t.Context(), stream, jetstream.ConsumerConfig{Durable: "tail"}); err != nil {
		sc.t.Fatal(err)
	}
}

// change edits a stream without the broker.
func (sc *scene) change(stream string, edit func(*jetstream.StreamConfig)) {
	sc.t.Helper()
	natstest.Reconfigure(sc.t, sc.js, stream, edit)
}

// provision creates the streams.
func (sc *scene) provision() {
	sc.t.Helper()
	provisionStreams(sc.t, sc.server, sc.cfg)
}

// createForeign creates a stream of another program.
func (sc *scene) createForeign(name string, subjects ...string) {
	sc.t.Helper()
	sc.create(jetstream.StreamConfig{Name: name, Subjects: subjects})
}

func (sc *scene) create(cfg jetstream.StreamConfig) {
	sc.t.Helper()
	if _, err := sc.js.CreateStream(sc.t.Context(), cfg); err != nil {
		sc.t.Fatal(err)
	}
}

// remove deletes a stream without the broker.
func (sc *scene) remove(stream string) {
	sc.t.Helper()
	if err := sc.js.DeleteStream(sc.t.Context(), stream); err != nil {
		sc.t.Fatal(err)
	}
}

// listen subscribes to a subject, and never answers.
func (sc *scene) listen(subject string) {
	sc.t.Helper()
	if _, err := sc.client.Subscribe(subject, func(*nats.Msg) {}); err != nil {
		sc.t.Fatal(err)
	}
}

// limit sets limits of the account.
func (sc *scene) limit(l server.JetStreamAccountLimits) {
	sc.t.Helper()
	err := sc.server.Server().GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": l})
	if err != nil {
		sc.t.Fatal(err)
	}
}

// fill publishes until the server refuses a message.
func (sc *scene) fill() {
	sc.t.Helper()
	sc.serve()
	for range 100 {
		if _, err := sc.js.Publish(sc.t.Context(), "delay.5m.orders.x", make([]byte, 10<<10)); err != nil {
			return
		}
	}
	sc.t.Fatal("the server has stored 100 messages and is not full")
}

// proxy relays requests to the JetStream API, except those for which take returns true.
func (sc *scene) proxy(take func(question string, m *nats.Msg) bool) {
	sc.t.Helper()
	sc.cfg.APIPrefix = natstest.ProxyAPI
	natstest.Proxy(sc.t, sc.server, take)
}

// hideLeader makes the API answer as if a stream had no leader.
func (sc *scene) hideLeader(stream string) {
	sc.t.Helper()
	sc.proxy(func(question string, m *nats.Msg) bool {
		if strings.HasSuffix(question, "."+stream) {
			return true // no answer
		}
		if question != "STREAM.LIST" {
			return false
		}
		answer, err := sc.client.Request("$JS.API.STREAM.LIST", m.Data, time.Second)
		var list map[string]any
		if err != nil || json.Unmarshal(answer.Data, &list) != nil {
			return true
		}
		list["streams"] = slices.DeleteFunc(list["streams"].([]any), func(s any) bool {
			return s.(map[string]any)["config"].(map[string]any)["name"] == stream
		})
		list["missing"] = []string{stream}
		data, err := json.Marshal(list)
		if err == nil {
			_ = m.Respond(data)
		}
		return true
	})
}
