package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// targetTimeout is the timeout of the request for the stream that listens on a target.
const targetTimeout = time.Second

// unable returns a refusal if the target's stream would refuse the schedule's message; otherwise nil. The server also
// refuses such a request. Without the refusal, the message would become a dead letter. Only a message with a TTL or a
// rollup needs the check. If the broker cannot see the target's stream, unable returns nil: the stream may be in
// another account.
func (s Store) unable(ctx context.Context, w Change) *Refusal {
	ttl, rollup := w.Schedule.TTL > 0 || w.Schedule.TTLEver, w.Schedule.Rollup
	if w.Cancel || !ttl && !rollup {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, targetTimeout)
	defer cancel()
	var found struct {
		Streams []jetstream.StreamInfo `json:"streams"`
	}
	asked := map[string]string{"subject": w.Schedule.Target}
	if err := s.API.Ask(ctx, "STREAM.LIST", asked, &found); err != nil {
		return nil
	}
	listens := func(subjects string) bool { return message.Match(subjects, w.Schedule.Target) }
	for _, info := range found.Streams {
		switch c := info.Config; {
		case !slices.ContainsFunc(c.Subjects, listens):
		case ttl && !c.AllowMsgTTL:
			return noTTL.because("the target's stream %s does not have allow_msg_ttl", c.Name)
		case rollup && !c.AllowRollup:
			return badRollup.because("the target's stream %s does not have allow_rollup_hdrs", c.Name)
		}
	}
	return nil
}
