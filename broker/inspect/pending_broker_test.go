package inspect_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestPendingWhileMessagesMove: between two pages a broker moves messages from lane to lane. Each message is listed
// once.
func TestPendingWhileMessagesMove(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := inspect.ConfigOf(t, "", "1s 10s 1m 10m 1h")
		inspect.CreateStreams(t, s, cfg)
		startBroker(t, s, cfg)
		i := inspect.OpenAs(t, s, cfg, "")
		rng := rand.New(rand.NewPCG(13, 13))
		var messages []*nats.Msg
		for range 200 {
			messages = append(messages, inspect.NewMsg(fmt.Sprintf("delayin.%dm.shop.a", 60+rng.IntN(180))))
		}
		inspect.StoreAll(t, i, messages...)
		time.Sleep(30 * time.Second)
		listings := make(map[string]int)
		moved := 0
		for _, w := range inspect.Pages(t, i, inspect.PendingQuery{Limit: 21}, func() { time.Sleep(11 * time.Minute) }) {
			listings[w.ID]++
			if w.Stream == "DELAY_1h" && w.Sequence > uint64(len(messages)) {
				moved++ // the broker has moved this message a second time
			}
		}
		for id, n := range listings {
			if n != 1 {
				t.Errorf("%s was listed %d times, want once", id, n)
			}
		}
		if len(listings) != len(messages) || moved == 0 {
			t.Errorf("listed %d, of which %d moved, want %d, of which at least one moved", len(listings), moved, len(messages))
		}
	})
}

// TestDeletingIsNotCancelling shows why no command cancels a message by its Delay-Id. A broker may have read the
// message long before it is due. In that case, the broker delivers the message although the leader has deleted it.
func TestDeletingIsNotCancelling(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := inspect.ConfigOf(t, "", "1s 1h")
		inspect.CreateStreams(t, s, cfg)
		arrivals := startBroker(t, s, cfg)
		i := inspect.OpenAs(t, s, cfg, "")
		inspect.Publish(t, i, "delay.1h.shop.a")
		time.Sleep(time.Second)
		if err := inspect.DeleteMessage(i, "DELAY_1h", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Message(t.Context(), "DELAY_1h", 1); !errors.Is(err, jetstream.ErrMsgNotFound) {
			t.Errorf("deleted: got %v, want %v", err, jetstream.ErrMsgNotFound)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got := arrivals.total(); got != 1 {
			t.Errorf("%d messages arrived, want 1; if none arrives any more, a deletion can cancel a message", got)
		}
	})
}
