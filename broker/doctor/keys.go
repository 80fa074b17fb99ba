package doctor

import (
	"context"

	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

// maxCounted is the maximum number of messages that countKeys reads from each stream. It reads the oldest messages,
// because a key that only verifies seals now has sealed older messages than the first key.
const maxCounted = 100_000

// sealCount has the numbers of sealed messages in a stream.
type sealCount struct {
	stream    string
	kind      streams.Kind
	byKey     map[string]uint64 // by the id of the key that sealed them
	truncated bool              // the stream has more than maxCounted messages, and the rest is not counted
	err       error             // the reason for an incomplete count
}

// countKeys counts the messages that each key has sealed. With only one key, it sends no request.
func (i gatherer) countKeys(ctx context.Context, found []streams.Spec) (counts []sealCount) {
	if len(i.Policy().Keys.IDs()) < 2 {
		return nil
	}
	for _, s := range found {
		// The intake has no sealed messages. An instance that starts seals the table of owners anew.
		if s.MarksErr != nil || s.Kind == streams.Intake || s.Kind == streams.Owners {
			continue
		}
		count := sealCount{stream: s.Stream, kind: s.Kind, byKey: make(map[string]uint64)}
		count.err = i.countKeysOf(ctx, &count)
		counts = append(counts, count)
		if count.err != nil { // probably a missing permission
			break
		}
	}
	return counts
}

func (i gatherer) countKeysOf(ctx context.Context, count *sealCount) error {
	ctx, cancel := i.WithRefusal(ctx)
	defer cancel()
	read := 0
	for m, err := range i.ScanHeaders(count.stream, "doctor").All(ctx) {
		if err != nil {
			return err
		}
		if read++; read > maxCounted {
			count.truncated = true
			break
		}
		in := m.Incoming(count.stream)
		if seals := in.Header[message.HeaderSeal]; len(seals) == 1 &&
			(count.kind != streams.Timers || in.Subject == i.names.TimersCursor() || entry.ClaimsBroker(i.Policy(), in)) {
			count.byKey[message.KeyID(seals[0])]++
		}
	}
	return nil
}
