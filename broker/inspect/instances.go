package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker"
)

const (
	// answersWait is how long instances may take to answer. They are asked on a connection of theirs that does little
	// else.
	answersWait = 300 * time.Millisecond
	// mostAnswers bounds what is gathered, since others may be able to publish there.
	mostAnswers = 4 * broker.MostOwners
	// askPause is how long to wait before asking again, while some lane has no owner.
	askPause = 250 * time.Millisecond
)

// How long no instance may own a lane before it is reported to be nobody's.
const (
	// Handover is enough for instances to hand a lane over, which takes them less than a second.
	Handover = time.Second
	// takeover is enough for an instance to take over from one that died, which takes less than six seconds.
	takeover = 8 * time.Second
	// aloneShare divides these where no instance answers at all: there is nobody to take over.
	aloneShare = 8
)

// instances is what the brokers that run say of themselves. Any client that may publish on the subject of an answer
// could have said it, so it is shown to people, and nothing is done on its account.
type instances struct {
	refused error // we may not ask, so nothing is known
	answers []broker.Answer
}

// owner is the instance that says that it owns a lane. For some seconds there may be two: then one that reads it.
func (n instances) owner(stream string) (who string, as broker.LaneAnswer, ok bool) {
	for _, a := range n.answers {
		for _, l := range a.Lanes {
			if l.Stream == stream && (!ok || l.Live && !as.Live) {
				who, as, ok = a.Instance, l, true
			}
		}
	}
	return who, as, ok
}

// lacks are the streams that no instance owns.
func (n instances) lacks(streams []string) []string {
	return slices.DeleteFunc(slices.Clone(streams), func(s string) bool { _, _, ok := n.owner(s); return ok })
}

// askInstances asks until every stream has had an owner, or for as long as a handover may take.
func (i *Inspector) askInstances(ctx context.Context, streams []string, handover time.Duration) (instances, error) {
	var all instances
	alone := handover / aloneShare
	for began := time.Now(); ; {
		n, err := i.askOnce(ctx, streams)
		if err != nil {
			return all, err
		}
		all.answers = append(n.answers, all.answers...) // the newest first
		if len(all.answers) == 0 {
			handover = alone
		}
		if len(all.lacks(streams)) == 0 || time.Since(began)+askPause > handover {
			return all, nil
		}
		select {
		case <-ctx.Done():
			return all, ctx.Err()
		case <-time.After(askPause):
		}
	}
}

// askOnce gathers the answers until all streams have an owner, or nobody says more.
func (i *Inspector) askOnce(ctx context.Context, streams []string) (instances, error) {
	var n instances
	err := i.askAll(ctx, func(reply string) error {
		return i.Conn.PublishRequest(i.names.StatusCall(), reply, nil)
	}, func(_ *nats.Msg, a broker.Answer) (more bool) {
		n.answers = append(n.answers, a)
		return n.lacks(streams) != nil
	})
	return n, err
}

// askAll sends a question, and takes the answers until take wants no more, or nobody says more.
func (i *Inspector) askAll(
	ctx context.Context, send func(reply string) error, take func(*nats.Msg, broker.Answer) (more bool),
) error {
	ctx, cancel := context.WithTimeout(ctx, answersWait)
	defer cancel()
	reply := i.names.StatusAnswers() + nuid.Next()
	sub, err := i.Conn.SubscribeSync(reply)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails on a closed connection only
	if err := send(reply); err != nil {
		return err
	}
	for range mostAnswers {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
			return nil
		case err != nil:
			return err
		}
		if m.Header.Get("Status") == "503" {
			return nil
		}
		var a broker.Answer
		if json.Unmarshal(m.Data, &a) != nil || a.Instance == "" {
			continue // no broker of ours wrote that
		}
		if !take(m, a) {
			return nil
		}
	}
	return nil
}
