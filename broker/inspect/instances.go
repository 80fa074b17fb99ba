package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"delaybroker/broker/message"
	"delaybroker/broker/stats"
)

const (
	// answerTimeout is the timeout for the instances' answers.
	answerTimeout = 300 * time.Millisecond
	// maxAnswers is the maximum number of answers to one request: other clients may publish on the reply subject, too.
	maxAnswers = 256
	// askInterval is the time between two requests to the instances.
	askInterval = 250 * time.Millisecond
)

// The time for which askInstances waits for the end of a transient state.
const (
	// MaxHandover is the maximum time without an active instance during a handover between two instances.
	MaxHandover = time.Second
	// maxTakeover is the maximum time without an active instance after its death. Another takes over in less than six
	// seconds.
	maxTakeover = 8 * time.Second
	// silentDivisor divides MaxHandover or maxTakeover if no instance answers: then no instance can take over.
	silentDivisor = 8
	// maxConflict is the maximum time with two active instances. One that was suspended or cut off learns of the other
	// within ten seconds.
	maxConflict = 12 * time.Second
	// maxUnread is the maximum time with an instance that does not read its lanes. An instance that becomes active creates
	// its consumers first. After an outage, the consumer's first heartbeat ends the trouble of an idle lane.
	maxUnread = 5 * time.Second
)

// Instances has the answers of the running instances to one request. Any client that may publish on the reply subject
// can forge an answer. So only a proven answer shows that a lane has a reader. An unproven answer can cause a finding
// of doctor, and suppresses none.
type Instances struct {
	Refusal error                  // the error of the request, such as the server's refusal; nil if there was none
	Answers []stats.InstanceStatus // all
	// ProvenAnswers are the sealed answers. Only a holder of a known secret can write one. If this program has no secret,
	// every answer counts as sealed.
	ProvenAnswers []stats.InstanceStatus
}

// owner returns the sealed answer of the instance that claims a lane, and the answer's part about the lane. If two
// instances claim the lane, owner prefers an instance that reads the lane.
func (n Instances) owner(stream string) (answer stats.InstanceStatus, lane stats.LaneAnswer, ok bool) {
	for _, a := range n.ProvenAnswers {
		for _, l := range a.Lanes {
			if l.Stream == stream && (!ok || l.Live && !lane.Live) {
				answer, lane, ok = a, l, true
			}
		}
	}
	return answer, lane, ok
}

// DoubleOwners returns two instances that both claim to deliver from one lane, and all lanes with two such claims.
// Unproven answers count: two brokers with different secrets are one cause of this fault.
func (n Instances) DoubleOwners() (first, second stats.InstanceStatus, lanes []string) {
	owners := make(map[string]stats.InstanceStatus)
	for _, a := range n.Answers {
		for _, l := range a.Lanes {
			if l.InDoubt || a.Draining {
				continue
			}
			if b, taken := owners[l.Stream]; !taken {
				owners[l.Stream] = a
			} else if b.Instance != a.Instance {
				first, second = b, a
				lanes = append(lanes, l.Stream)
			}
		}
	}
	slices.Sort(lanes)
	return first, second, slices.Compact(lanes)
}

// Names returns the names of the instances with a matching answer, without duplicates.
func (n Instances) Names(match func(stats.InstanceStatus) bool) []string {
	var names []string
	for _, a := range n.Answers {
		if match(a) {
			names = append(names, a.Instance)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// missing returns the streams without an owner, and whether an owner does not read its stream, or may no longer own it.
func (n Instances) missing(streams []string) (unowned int, unread bool) {
	for _, s := range streams {
		_, lane, ok := n.owner(s)
		if !ok {
			unowned++
		}
		unread = unread || ok && isStopped(lane)
	}
	return unowned, unread
}

// askInstances repeats the request for the status until every stream has an owner, for at most the duration handover.
// If settle is true, askInstances also waits until each owner reads its stream, for at most maxUnread, and until no
// stream has two owners, for at most maxConflict.
func (i *Inspector) askInstances(
	ctx context.Context, streams []string, handover time.Duration, settle bool,
) (Instances, error) {
	answered := false // an instance has answered at least one request
	for began := time.Now(); ; {
		n, err := i.askOnce(ctx, streams, settle)
		if err != nil {
			return n, err
		}
		wait := handover
		if answered = answered || len(n.Answers) > 0; !answered {
			wait /= silentDivisor
		}
		unowned, unread := n.missing(streams)
		_, _, conflicts := n.DoubleOwners()
		waited := time.Since(began) + askInterval
		if (unowned == 0 || waited > wait) &&
			(!settle || (len(conflicts) == 0 || waited > maxConflict) && (!unread || waited > maxUnread)) {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(askInterval):
		}
	}
}

// NoInstanceRuns reports whether the server has no subscriber for the request that all instances answer. If that is
// unknown, for example because this user may not send the request, NoInstanceRuns returns false.
func (s *Session) NoInstanceRuns(ctx context.Context, names message.Names) bool {
	ctx, cancel := s.WithRefusal(ctx)
	defer cancel()
	err := s.askAll(ctx, message.Policy{Names: names}, nil, func(Member) (more bool) { return false })
	return errors.Is(err, nats.ErrNoResponders)
}

// askOnce requests the status once, and collects the answers until the timeout. If settle is false, askOnce returns as
// soon as all streams have an owner.
func (i *Inspector) askOnce(ctx context.Context, streams []string, settle bool) (Instances, error) {
	var n Instances
	err := i.askAll(ctx, nil, func(m Member) (more bool) {
		n.Answers = append(n.Answers, m.InstanceStatus)
		if m.Proven {
			n.ProvenAnswers = append(n.ProvenAnswers, m.InstanceStatus)
		}
		unowned, _ := n.missing(streams)
		return settle || unowned > 0
	})
	return n, err
}

// askAll calls Session.askAll for this broker. It is no error if no instance runs.
func (i *Inspector) askAll(ctx context.Context, send func(reply string) error, take func(Member) (more bool)) error {
	err := i.Session.askAll(ctx, i.Policy(), send, take)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil
	}
	return err
}

// askAll sends a request, and passes the answers to take until take returns false. It waits for at most answerTimeout,
// and passes at most maxAnswers answers. If send is nil, askAll requests the status. If the server has no subscriber
// for the request, askAll returns nats.ErrNoResponders.
func (s *Session) askAll(
	ctx context.Context, p message.Policy, send func(reply string) error, take func(Member) (more bool),
) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply := p.Names.StatusAnswers() + nuid.Next()
	answers := make(chan *nats.Msg, maxAnswers) // SubscribeSync would allocate half a megabyte
	sub, err := s.Conn.ChanSubscribe(reply, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	if send == nil {
		send = func(reply string) error { return s.Conn.PublishRequest(p.Names.StatusCall(), reply, nil) }
	}
	if err := send(reply); err != nil {
		return err
	}
	for range maxAnswers {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-ctx.Done():
		}
		switch {
		case m == nil && s.Conn.IsClosed():
			return nats.ErrConnectionClosed
		case m == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil
		case m == nil:
			return ctx.Err()
		case m.Header.Get("Status") == "503":
			return nats.ErrNoResponders
		}
		var a stats.InstanceStatus
		if json.Unmarshal(m.Data, &a) != nil || a.Instance == "" {
			continue // not an answer of a broker
		}
		note := message.Note{Subject: m.Subject, Body: m.Data, Seal: m.Header.Get(message.HeaderSeal)}
		if !take(Member{a, p.Keys.Trusts(note)}) {
			return nil
		}
	}
	return nil
}
