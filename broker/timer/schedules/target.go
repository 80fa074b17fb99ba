package schedules

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
)

// unable returns a refusal if the schedule's subject is invalid, or if the target's stream would refuse the schedule's
// message; otherwise nil. The server also refuses such a request. Without the refusal, the message would become a dead
// letter. Only a message with a TTL or a rollup needs the check of the stream. If the broker cannot see the target's
// stream, unable returns nil: the stream may be in another account.
func (s Store) unable(ctx context.Context, w Change) *Refusal {
	if problem := entry.CheckSchedule(s.Policy, w.Schedule.Subject); problem != nil {
		return &Refusal{400, jsapi.CodeNotStored, problem.Sentence}
	}
	ttl, rollup := w.Schedule.TTL != "", w.Schedule.Rollup
	if w.Cancel || !ttl && !rollup {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
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
