package deliver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// leaderless answers requests for the list with one stream, which has no leader. Requests about a single subject get
// the server's answer.
type leaderless struct {
	jsapi.Asker
	stream string
}

func (l leaderless) Ask(ctx context.Context, subject string, request, answer any) error {
	if _, single := request.(map[string]string); single {
		return l.Asker.Ask(ctx, subject, request, answer)
	}
	pages := &natstest.Pages{Answers: []string{`{"total":1,"missing":["` + l.stream + `"]}`}}
	return pages.Ask(ctx, subject, map[string]int{"offset": 0}, answer)
}

// TestStreamWithoutLeader: a stream has had no leader since the broker started, so the list lacks its subjects. Core
// subscribers of other subjects still get only one copy. On the subjects of the stream, silence is no delivery.
func TestStreamWithoutLeader(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		k := newKit(t, s)
		k.lookup.api = leaderless{k.lookup.api, "NEW"}
		k.stream(jetstream.StreamConfig{Name: "NEW", Subjects: []string{"shop.>"}})
		seen := k.subscribe("ui.a", nil)
		v := k.send("ui.a", message.ModeAuto)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(v.results) != 1 || v.results[0].Outcome != Delivered || seen.get() != 1 {
			t.Errorf("got %v, %d copies; want delivered, one copy", v.results, seen.get())
		}
		for subject, want := range map[string]listenerKind{"ui.a": kindNone, "ui.b": kindNone, "shop.x": kindAcks} {
			k.lookup.listenerKind(subject, time.Now())
			time.Sleep(time.Millisecond)
			if got := k.lookup.listenerKind(subject, time.Now()); got != want {
				t.Errorf("%s: %v, want %v", subject, got, want)
			}
		}
	})
}
