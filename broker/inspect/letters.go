package inspect

import (
	"context"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
)

// Letters are the dead letters of a broker.
type Letters struct {
	*deadletter.Store
	Opened time.Time // time of the call of Inspector.Letters, by the server's clock

	openedLocal time.Time // the same time, by the local clock
}

// Letters opens the dead letters. It reads the brokers' secrets from the streams' metadata, to check the seals of the
// letters, and requests the server's time.
func (i *Inspector) Letters(ctx context.Context) (l *Letters, err error) {
	if err := i.streams.ReadKeys(ctx, i.JetStream); err != nil {
		return nil, err
	}
	l = &Letters{Store: deadletter.New(i.scan(), i.Policy(), ShortestRetry(i.Wanted()))}
	if l.Opened, err = l.Now(ctx); err != nil {
		return nil, err
	}
	l.openedLocal = time.Now()
	return l, nil
}

// ShortestRetry returns the name of the retry lane with the shortest delay, such as 5s; empty if there is no retry
// lane.
func ShortestRetry(specs []streams.Spec) string {
	var shortest streams.Spec
	for _, s := range specs {
		if s.Kind == streams.Retry && (shortest.Name == "" || s.Delay < shortest.Delay) {
			shortest = s
		}
	}
	return shortest.Name
}

// Time returns an estimate of the current time by the server's clock.
func (l *Letters) Time() time.Time { return l.Opened.Add(time.Since(l.openedLocal)) }

// Reason returns the reason why a message became a dead letter. The reason of a letter that no seal proves begins with
// UNSEALED, except with the code BadInternal, which says the same.
func Reason(l deadletter.Letter) string {
	if l.Unproven != nil && l.Code != message.BadInternal {
		return "UNSEALED: " + l.Sentence
	}
	if l.Problem != nil && l.Sentence == "" {
		return l.Problem.Sentence
	}
	return l.Sentence
}
