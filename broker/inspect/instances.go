package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
)

const (
	// answersWait is how long instances may take to answer. They are asked on a connection of theirs that does little
	// else.
	answersWait = 300 * time.Millisecond
	// mostAnswers bounds what is gathered, since others may be able to publish there.
	mostAnswers = 4 * config.MaxOwners
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
	// twice is how long two instances may own one lane before that is reported. Two that missed each other at their
	// start find out within ten seconds.
	twice = 12 * time.Second
	// begins is how long a lane may have an owner that does not read it, before that is reported: a new owner makes its
	// consumer first.
	begins = 5 * time.Second
)

// Instances is what the brokers that run say of themselves. Any client that may publish on the subject of an answer
// could have said it, so it is shown to people, and nothing is done on its account.
type Instances struct {
	Refused error // we may not ask, so nothing is known
	Answers []stats.Answer
	Latest  []stats.Answer // those of the last time that they were asked
	// Proven are the answers that a broker has sealed, as far as the secrets are known that would tell: the newest of each
	// instance. No other client can have written them.
	Proven []stats.Answer
}

// owner is the instance that says that it owns a lane. For some seconds there may be two: then one that reads it.
func (n Instances) owner(stream string) (who string, as stats.LaneAnswer, ok bool) {
	for _, a := range n.Answers {
		for _, l := range a.Lanes {
			if l.Stream == stream && (!ok || l.Live && !as.Live) {
				who, as, ok = a.Instance, l, true
			}
		}
	}
	return who, as, ok
}

// Double returns two instances that both claim to deliver from one lane, and the lanes that two instances claim.
func (n Instances) Double() (one, other stats.Answer, lanes []string) {
	first := make(map[string]stats.Answer)
	for _, a := range n.Latest {
		for _, l := range a.Lanes {
			if l.InDoubt || a.Draining {
				continue
			}
			if b, taken := first[l.Stream]; !taken {
				first[l.Stream] = a
			} else if b.Instance != a.Instance {
				one, other = b, a
				lanes = append(lanes, l.Stream)
			}
		}
	}
	slices.Sort(lanes)
	return one, other, slices.Compact(lanes)
}

// Names are the instances that say something of themselves, each once.
func (n Instances) Names(say func(stats.Answer) bool) []string {
	var all []string
	for _, a := range n.Answers {
		if say(a) {
			all = append(all, a.Instance)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// formatOf is the newest format that an instance reads, or zero if it does not say.
func (n Instances) formatOf(instance string) int {
	for _, a := range n.Answers {
		if a.Instance == instance {
			return a.Format
		}
	}
	return 0
}

// stopped are the streams whose owner says that it does not read.
func (n Instances) stopped(streams []string) []string {
	return slices.DeleteFunc(slices.Clone(streams), func(s string) bool {
		_, as, ok := n.owner(s)
		return !ok || as.Live && !as.InDoubt
	})
}

// lacks are the streams that no instance owns.
func (n Instances) lacks(streams []string) []string {
	return slices.DeleteFunc(slices.Clone(streams), func(s string) bool { _, _, ok := n.owner(s); return ok })
}

// askInstances asks until every stream has had an owner, or for as long as a handover may take. If all are to answer,
// it also asks until each owner reads, and no stream has two.
func (i *Inspector) askInstances(
	ctx context.Context, streams []string, handover time.Duration, all bool,
) (Instances, error) {
	var heard Instances
	alone := handover / aloneShare
	for began := time.Now(); ; {
		n, err := i.askOnce(ctx, streams, all)
		if err != nil {
			return heard, err
		}
		heard.Answers, heard.Latest = append(n.Answers, heard.Answers...), n.Answers // the newest first
		heard.Proven = newest(append(n.Proven, heard.Proven...))
		if len(heard.Answers) == 0 {
			handover = alone
		}
		_, _, double := heard.Double()
		waited := time.Since(began) + askPause
		settled := (len(double) == 0 || waited > twice) && (len(heard.stopped(streams)) == 0 || waited > begins)
		if (len(heard.lacks(streams)) == 0 || waited > handover) && (!all || settled) {
			return heard, nil
		}
		select {
		case <-ctx.Done():
			return heard, ctx.Err()
		case <-time.After(askPause):
		}
	}
}

// newest keeps the first answer of each instance.
func newest(answers []stats.Answer) []stats.Answer {
	slices.SortStableFunc(answers, func(a, b stats.Answer) int { return strings.Compare(a.Instance, b.Instance) })
	return slices.CompactFunc(answers, func(a, b stats.Answer) bool { return a.Instance == b.Instance })
}

// Deserted reports whether it is certain that no instance runs: nobody is there to hear the question that all of them
// answer. Where it is not certain, as for a user who may not ask, it is false.
func (s *Session) Deserted(ctx context.Context, names message.Names) bool {
	ctx, cancel := s.Allowed(ctx)
	defer cancel()
	ctx, cancelWait := context.WithTimeout(ctx, answersWait)
	defer cancelWait()
	reply := names.StatusAnswers() + nuid.Next()
	sub, err := s.Conn.SubscribeSync(reply)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails on a closed connection only
	if s.Conn.PublishRequest(names.StatusCall(), reply, nil) != nil {
		return false
	}
	_, err = sub.NextMsgWithContext(ctx)
	return errors.Is(err, nats.ErrNoResponders)
}

// askOnce gathers the answers until nobody says more; or until all streams have an owner, unless all are to answer.
func (i *Inspector) askOnce(ctx context.Context, streams []string, all bool) (Instances, error) {
	var n Instances
	err := i.askAll(ctx, func(reply string) error {
		return i.Conn.PublishRequest(i.names.StatusCall(), reply, nil)
	}, func(m *nats.Msg, a stats.Answer) (more bool) {
		n.Answers = append(n.Answers, a)
		if i.proven(m) {
			n.Proven = append(n.Proven, a)
		}
		return all || len(n.lacks(streams)) > 0
	})
	return n, err
}

// askAll sends a question, and takes the answers until take wants no more, or nobody says more.
func (i *Inspector) askAll(
	ctx context.Context, send func(reply string) error, take func(*nats.Msg, stats.Answer) (more bool),
) error {
	ctx, cancel := context.WithTimeout(ctx, answersWait)
	defer cancel()
	reply := i.names.StatusAnswers() + nuid.Next()
	answers := make(chan *nats.Msg, mostAnswers) // SubscribeSync would make room for half a megabyte
	sub, err := i.Conn.ChanSubscribe(reply, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails on a closed connection only
	if err := send(reply); err != nil {
		return err
	}
	for range mostAnswers {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-ctx.Done():
		}
		switch {
		case m == nil && i.Conn.IsClosed():
			return nats.ErrConnectionClosed
		case m == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil
		case m == nil:
			return ctx.Err()
		case m.Header.Get("Status") == "503": // nobody listens
			return nil
		}
		var a stats.Answer
		if json.Unmarshal(m.Data, &a) != nil || a.Instance == "" {
			continue // no broker of ours wrote that
		}
		if !take(m, a) {
			return nil
		}
	}
	return nil
}

// proven reports whether a broker wrote an answer, as far as the secrets are known that would tell.
func (i *Inspector) proven(answer *nats.Msg) bool {
	note := message.Note{Subject: answer.Subject, Body: answer.Data, Seal: answer.Header.Get(message.HeaderSeal)}
	return i.streams.Policy().Keys.Trusts(note, message.SealedAlways)
}
