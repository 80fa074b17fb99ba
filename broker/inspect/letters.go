package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// Letters are the dead letters of a broker, by the clock of its server.
type Letters struct {
	*deadletter.Store
	Asked time.Time // when they were opened, by the server's clock

	ours   time.Time // likewise, by ours
	policy message.Policy
}

// Letters reads the secrets of the streams, which prove that a broker wrote a letter, and asks the server for the time.
func (i *Inspector) Letters(ctx context.Context) (*Letters, error) {
	if err := i.streams.ReadKeys(ctx, i.JetStream); err != nil {
		return nil, err
	}
	l := &Letters{Store: i.store(), policy: i.Policy()}
	var err error
	if l.Asked, err = l.Now(ctx); err != nil {
		return nil, err
	}
	l.ours = time.Now()
	return l, nil
}

// store opens the letters. Those that are resent go through the retry lane with the shortest wait.
func (i *Inspector) store() *deadletter.Store {
	retries := slices.DeleteFunc(i.Wanted(), func(s streams.Spec) bool { return s.Kind != streams.Retry })
	shortest := slices.MinFunc(retries, func(a, b streams.Spec) int { return cmp.Compare(a.Delay, b.Delay) })
	return deadletter.New(deadletter.Config{
		Conn: i.Conn, JetStream: i.JetStream, APIPrefix: i.api.API, Policy: i.Policy(), Lane: shortest.Name,
	})
}

// Time is the time by the server's clock, about.
func (l *Letters) Time() time.Time { return l.Asked.Add(time.Since(l.ours)) }

// Reason says why a message became a dead letter.
func Reason(l deadletter.Letter) string {
	if l.Unproven != nil && l.Code != message.BadInternal { // the code says it otherwise
		return "UNSEALED: " + l.Sentence
	}
	if l.Problem != nil && l.Sentence == "" {
		return l.Problem.Sentence
	}
	return l.Sentence
}
