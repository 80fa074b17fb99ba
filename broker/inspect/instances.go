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
	// answerTimeout is the timeout for the instances' answers.
	answerTimeout = 300 * time.Millisecond
	// maxAnswers is the maximum number of answers to one request: other clients may publish on the reply subject, too.
	maxAnswers = 4 * config.MaxOwners
	// askInterval is the time between two requests to the instances.
	askInterval = 250 * time.Millisecond
)

// The time for which askInstances waits for the end of a transient state of a lane.
const (
	// MaxHandover is the maximum time without an owner during a handover between two instances.
	MaxHandover = time.Second
	// maxTakeover is the maximum time without an owner after the death of an instance. Another instance takes over in less
	// than six seconds.
	maxTakeover = 8 * time.Second
	// silentDivisor divides MaxHandover or maxTakeover if no instance answers: then no instance can take over.
	silentDivisor = 8
	// maxConflict is the maximum time with two owners. Two new instances discover each other within ten seconds.
	maxConflict = 12 * time.Second
	// maxUnread is the maximum time with an owner that does not read the lane. A new owner creates its consumer first.
	maxUnread = 5 * time.Second
)

// Instances has the answers of the running instances. Any client that may publish on the reply subject can forge an
// answer. So only a proven answer shows that a lane has a reader. An unproven answer can cause a finding of doctor, and
// suppresses none.
type Instances struct {
	Refusal       error          // the error of the request, such as the server's refusal; nil if there was none
	Answers       []stats.Answer // answers to all requests, the latest request first
	LatestAnswers []stats.Answer // answers to the latest request
	// ProvenAnswers has the newest sealed answer of each instance. Only a holder of a known secret can write one. If this
	// program has no secret, every answer counts as sealed.
	ProvenAnswers []stats.Answer
}

// owner returns the sealed answer of the instance that claims a lane, and the answer's part about the lane. If two
// instances claim the lane, owner prefers an instance that reads the lane.
func (n Instances) owner(stream string) (answer stats.Answer, lane stats.LaneAnswer, ok bool) {
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
func (n Instances) DoubleOwners() (first, second stats.Answer, lanes []string) {
	owners := make(map[string]stats.Answer)
	for _, a := range n.LatestAnswers {
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
func (n Instances) Names(match func(stats.Answer) bool) []string {
	var names []string
	for _, a := range n.Answers {
		if match(a) {
			names = append(names, a.Instance)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unreadLanes returns the streams with an owner that does not read them, or may no longer own them.
func (n Instances) unreadLanes(streams []string) []string {
	return slices.DeleteFunc(slices.Clone(streams), func(s string) bool {
		_, lane, ok := n.owner(s)
		return !ok || lane.Live && !lane.InDoubt
	})
}

func (n Instances) unownedLanes(streams []string) []string {
	return slices.DeleteFunc(slices.Clone(streams), func(s string) bool { _, _, ok := n.owner(s); return ok })
}

// askInstances repeats the request for the status until every stream has an owner, for at most the duration handover.
// If settle is true, askInstances also waits until each owner reads its stream, for at most maxUnread, and until no
// stream has two owners, for at most maxConflict.
func (i *Inspector) askInstances(
	ctx context.Context, streams []string, handover time.Duration, settle bool,
) (Instances, error) {
	var known Instances
	shortHandover := handover / silentDivisor
	for began := time.Now(); ; {
		n, err := i.askOnce(ctx, streams, settle)
		if err != nil {
			return known, err
		}
		known.Answers, known.LatestAnswers = append(n.Answers, known.Answers...), n.Answers // the newest first
		known.ProvenAnswers = newestAnswers(append(n.ProvenAnswers, known.ProvenAnswers...))
		if len(known.Answers) == 0 {
			handover = shortHandover
		}
		_, _, conflicts := known.DoubleOwners()
		waited := time.Since(began) + askInterval
		settled := (len(conflicts) == 0 || waited > maxConflict) &&
			(len(known.unreadLanes(streams)) == 0 || waited > maxUnread)
		if (len(known.unownedLanes(streams)) == 0 || waited > handover) && (!settle || settled) {
			return known, nil
		}
		select {
		case <-ctx.Done():
			return known, ctx.Err()
		case <-time.After(askInterval):
		}
	}
}

// newestAnswers returns the first answer of each instance. In answers, the newest are first.
func newestAnswers(answers []stats.Answer) []stats.Answer {
	slices.SortStableFunc(answers, func(a, b stats.Answer) int { return strings.Compare(a.Instance, b.Instance) })
	return slices.CompactFunc(answers, func(a, b stats.Answer) bool { return a.Instance == b.Instance })
}

// NoInstanceRuns reports whether the server has no subscriber for the request that all instances answer. If that is
// unknown, for example because this user may not send the request, NoInstanceRuns returns false.
func (s *Session) NoInstanceRuns(ctx context.Context, names message.Names) bool {
	ctx, cancel := s.WithRefusal(ctx)
	defer cancel()
	noSubscriber, err := s.askAll(ctx, names, nil, func(*nats.Msg, stats.Answer) (more bool) { return false })
	return noSubscriber && err == nil
}

// askOnce requests the status once, and collects the answers until the timeout. If settle is false, askOnce returns as
// soon as all streams have an owner.
func (i *Inspector) askOnce(ctx context.Context, streams []string, settle bool) (Instances, error) {
	var n Instances
	_, err := i.askAll(ctx, nil, func(m Member) (more bool) {
		n.Answers = append(n.Answers, m.Answer)
		if m.Proven {
			n.ProvenAnswers = append(n.ProvenAnswers, m.Answer)
		}
		return settle || len(n.unownedLanes(streams)) > 0
	})
	return n, err
}

// askAll calls Session.askAll for this broker, and checks the seals of the answers.
func (i *Inspector) askAll(
	ctx context.Context, send func(reply string) error, take func(Member) (more bool),
) (noSubscriber bool, err error) {
	return i.Session.askAll(ctx, i.names, send, func(m *nats.Msg, a stats.Answer) (more bool) {
		note := message.Note{Subject: m.Subject, Body: m.Data, Seal: m.Header.Get(message.HeaderSeal)}
		return take(Member{a, i.streams.Policy().Keys.Trusts(note, message.TrustSealed)})
	})
}

// askAll sends a request, and passes the answers to take until take returns false. It waits for at most answerTimeout,
// and passes at most maxAnswers answers. If send is nil, askAll requests the status. NoSubscriber is true if the server
// has no subscriber for the request; then err is nil.
func (s *Session) askAll(
	ctx context.Context, names message.Names, send func(reply string) error,
	take func(*nats.Msg, stats.Answer) (more bool),
) (noSubscriber bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply := names.StatusAnswers() + nuid.Next()
	answers := make(chan *nats.Msg, maxAnswers) // SubscribeSync would allocate half a megabyte
	sub, err := s.Conn.ChanSubscribe(reply, answers)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	if send == nil {
		send = func(reply string) error { return s.Conn.PublishRequest(names.StatusCall(), reply, nil) }
	}
	if err := send(reply); err != nil {
		return false, err
	}
	for range maxAnswers {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-ctx.Done():
		}
		switch {
		case m == nil && s.Conn.IsClosed():
			return false, nats.ErrConnectionClosed
		case m == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return false, nil
		case m == nil:
			return false, ctx.Err()
		case m.Header.Get("Status") == "503":
			return true, nil
		}
		var a stats.Answer
		if json.Unmarshal(m.Data, &a) != nil || a.Instance == "" {
			continue // not an answer of a broker
		}
		if !take(m, a) {
			return false, nil
		}
	}
	return false, nil
}
