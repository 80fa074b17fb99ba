package doctor

import (
	"context"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

// maxCounted is the maximum number of messages that countKeys counts in each stream. The count begins with the oldest
// messages, which have the earlier keys.
const maxCounted = 100_000

// sealCount has the number of messages of a stream by the key that sealed them.
type sealCount struct {
	stream    string
	kind      streams.Kind
	byKey     map[string]uint64 // by the id of the key
	truncated bool              // the stream has further messages
	err       error             // why they could not be counted
}

// countKeys counts the messages that each key has sealed. If there is only one key, it sends no request.
func (i gatherer) countKeys(ctx context.Context, found []streams.Spec) (all []sealCount) {
	if len(i.Policy().Keys.IDs()) < 2 {
		return nil
	}
	for _, s := range found {
		if s.MarksErr != nil || s.Kind == streams.Intake || s.Kind == streams.Owners { // the table is resealed at a start
			continue
		}
		counted := sealCount{stream: s.Stream, kind: s.Kind, byKey: make(map[string]uint64)}
		counted.err = i.countKeysOf(ctx, &counted)
		all = append(all, counted)
		if counted.err != nil { // most likely a missing permission
			break
		}
	}
	return all
}

func (i gatherer) countKeysOf(ctx context.Context, counted *sealCount) error {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	read := 0
	for m, err := range i.ScanHeaders(counted.stream, "doctor").All(ctx) {
		if err != nil {
			return err
		}
		if read++; read > maxCounted {
			counted.truncated = true
			break
		}
		in := m.Incoming(counted.stream)
		if seals := in.Header[message.HeaderSeal]; len(seals) == 1 &&
			(counted.kind != streams.Timers || in.Subject == i.names.TimersCursor() || entry.ClaimsOurs(i.Policy(), in)) {
			counted.byKey[message.KeyID(seals[0])]++
		}
	}
	return nil
}
