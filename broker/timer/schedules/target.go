package schedules

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
)

// targetTime is the timeout for asking the server which stream listens on a target.
const targetTime = time.Second

// unable returns the refusal of a schedule whose message the target's stream would refuse, as far as the account's
// streams show. The server refuses it at the request, too. Otherwise it would be acknowledged and become a dead letter.
// Only a TTL or a rollup needs the question. Without an answer the schedule is stored: another account may have the
// stream.
func (s Store) unable(ctx context.Context, w Change) *Refusal {
	ttl, rollup := w.Schedule.TTL > 0 || w.Schedule.TTLEver, w.Schedule.Rollup
	if w.Cancel || !ttl && !rollup {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, targetTime)
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
