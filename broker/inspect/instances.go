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
	// askPause is how soon those are asked again who did not own everything between them.
	askPause = 250 * time.Millisecond
)

// A lane is nobody's when no instance owns it for so long. Instances hand lanes over within a second, and take over
// from one that died within six; that takes one who is there.
const (
	// Handover is long enough when somebody waits for a table.
	Handover = time.Second
	// takeover is long enough for a verdict.
	takeover = 8 * time.Second
	// aloneShare is the part of it that is enough when nobody answers at all.
	aloneShare = 8
)

// instances is what the brokers that run say of themselves. Any client that may publish on the subject of an answer
// could have said it, so it is shown to people, and nothing is done on its account.
type instances struct {
	refused error // we may not ask, so nothing is known
	answers []broker.Answer
}

// owner is who says that it owns a lane. Of two, which is a matter of seconds, one that reads it.
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

// askInstances asks until all streams have had an owner, for as long as a lane may be between two.
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
	ctx, cancel := context.WithTimeout(ctx, answersWait)
	defer cancel()
	reply := i.names.StatusAnswers() + nuid.Next()
	sub, err := i.Conn.SubscribeSync(reply)
	if err != nil {
		return n, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails on a closed connection only
	if err := i.Conn.PublishRequest(i.names.StatusCall(), reply, nil); err != nil {
		return n, err
	}
	for len(n.answers) < mostAnswers {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrNoResponders):
			return n, nil
		case err != nil:
			return n, err
		}
		if m.Header.Get("Status") == "503" {
			return n, nil
		}
		var a broker.Answer
		if json.Unmarshal(m.Data, &a) != nil || a.Instance == "" {
			continue // no broker of ours wrote that
		}
		n.answers = append(n.answers, a)
		if n.lacks(streams) == nil {
			break
		}
	}
	return n, nil
}
