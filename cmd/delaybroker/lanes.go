package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/broker/lane"
	"delaybroker/broker/layout"
	"delaybroker/broker/lease"
	"delaybroker/broker/message"
)

const (
	// fullAt is the part of a stream's limit from which it counts as full: the next large message may be refused.
	fullAt = 0.98
	// lateFrom is how long a message may lie in a lane that it should have left. A commit follows the work by a while.
	lateFrom = time.Second
	// recently is how long ago a consumer may have been served to count as read while it waits for nothing.
	recently = 5 * time.Second
	// earliness is how much less than it should be the time may be that is left until a lane is read on: clocks differ.
	earliness = time.Second
)

// What is said of a lane.
const (
	stateServing  = "serving"
	stateRetiring = "retiring" // not in DELAY_LEVELS: it takes no new messages
	stateNewer    = "newer format"
	stateMissing  = "missing"
	stateForeign  = "foreign" // a stream has the name, and it is none of ours
	stateBroken   = "broken marks"
	stateFull     = "full"
	stateSilent   = "no answer"

	ownerRead    = "read"    // an instance reads it
	ownerLater   = "later"   // its instance holds what is due soon, or all it may, and reads on in time
	ownerStopped = "stopped" // its instance cannot read it at the moment, or may not be its owner any more
	ownerNobody  = "nobody"  // no instance owns it
	ownerUnknown = "unknown" // we may not ask the instances
)

// newerMessage is said of a message that another version of the broker wrote.
const newerMessage = "written by a newer broker; it waits for one"

// laneView is a stream of ours as one look shows it.
type laneView struct {
	Stream   string      `json:"stream"`
	Kind     layout.Kind `json:"kind"`
	Level    string      `json:"level,omitempty"`
	Delay    float64     `json:"delay_seconds"`
	Pending  uint64      `json:"pending"`
	Bytes    uint64      `json:"bytes"`
	HeadDue  time.Time   `json:"head_due,omitzero"`
	HeadDead string      `json:"head_dead_letter,omitempty"` // the code that the head is about to get
	Overdue  float64     `json:"overdue_seconds"`            // since the head should have left the lane
	Owner    string      `json:"owner,omitempty"`
	Instance string      `json:"instance,omitempty"` // that owns it
	Held     int         `json:"held"`               // messages that its instance has in memory
	Read     uint64      `json:"read"`               // the last sequence that its instance has read
	Resumes  time.Time   `json:"resumes_at,omitzero"`
	In       *float64    `json:"in_per_second,omitempty"`  // since the last look, where there was one
	Out      *float64    `json:"out_per_second,omitempty"` // likewise
	State    string      `json:"state"`
	Error    string      `json:"error,omitempty"` // why less is known

	spec layout.Spec
	info *jetstream.StreamInfo
}

// lanesView is all of them.
type lanesView struct {
	Time   time.Time  `json:"time"` // by the server's clock
	Lanes  []laneView `json:"lanes"`
	Totals struct {
		Pending uint64  `json:"pending"` // without dead letters
		Dead    uint64  `json:"dead_letters"`
		Overdue float64 `json:"overdue_seconds"` // the worst
		Unread  int     `json:"unread"`          // lanes that nobody owns, or whose owner cannot read them
	} `json:"totals"`

	watched bool // there is a look before this one, or will be one after it
}

// look asks for all lanes at once: one after the other takes seconds across an ocean. Patience is how long a lane may be
// nobody's before it is said to be.
func (o *operator) look(ctx context.Context, patience time.Duration) (lanesView, error) {
	allowed, cancel := o.allowed(ctx)
	defer cancel()
	finding, cancelFinding := context.WithTimeout(allowed, apiPatience)
	defer cancelFinding()
	found, all, err := o.streams.Provisioner(o.js).Find(finding)
	if err != nil {
		return lanesView{}, because(allowed, err)
	}
	asking, cancelAsking := o.allowed(ctx) // the streams can be looked at by who may not ask the instances
	n, err := o.askAll(asking, lanesOf(found), patience)
	if err != nil {
		n.refused = because(asking, err)
	}
	cancelAsking()
	allowed, cancelAgain := o.allowed(ctx)
	defer cancelAgain()
	v := o.lookAt(allowed, o.wanted(), found, all, n)
	return v, because(allowed, context.Cause(allowed)) // one refusal ends all questions, and half an answer would mislead
}

// lanesOf are the streams that an instance should own.
func lanesOf(found []layout.Spec) []string {
	var all []string
	for _, s := range found {
		if s.Kind != layout.Dead && s.Kind != layout.Owners && s.Broken == nil && s.Format <= layout.Format {
			all = append(all, s.Stream)
		}
	}
	return all
}

func (o *operator) lookAt(ctx context.Context, want, found []layout.Spec, all map[string]*jetstream.StreamInfo, n instances) lanesView {
	var v lanesView
	_ = o.streams.Learn(found) // without a secret, no message is judged by its seal: doctor says so
	for _, s := range found {
		if s.Kind == layout.Owners {
			continue
		}
		l := viewOf(s, stateServing)
		switch wanted := slices.ContainsFunc(want, func(w layout.Spec) bool { return w.Stream == s.Stream }); {
		case s.Broken != nil:
			l.State, l.Error = stateBroken, s.Broken.Error()
		case s.Format > layout.Format:
			l.State = stateNewer
		case !wanted:
			l.State = stateRetiring
		}
		v.Lanes = append(v.Lanes, l)
	}
	var asking sync.WaitGroup
	for i := range v.Lanes {
		asking.Go(func() { o.fill(ctx, &v.Lanes[i], n) })
	}
	table, err := o.table(ctx, found)
	asking.Wait()
	for i := range v.Lanes {
		l := &v.Lanes[i]
		if err != nil && l.Error == "" && l.Owner != "" {
			l.Error = err.Error()
		}
		l.Instance = cmp.Or(l.Instance, table.Lanes[l.Stream].Instance)
	}
	v.settle()
	c := layout.Compare(want, all)
	for _, w := range want {
		switch {
		case slices.Contains(c.Missing, w.Stream):
			v.Lanes = append(v.Lanes, viewOf(w, stateMissing))
		case slices.Contains(c.Foreign, w.Stream) && !slices.ContainsFunc(found, func(s layout.Spec) bool { return s.Stream == w.Stream }):
			v.Lanes = append(v.Lanes, viewOf(w, stateForeign))
		}
	}
	slices.SortFunc(v.Lanes, byWay)
	v.sum()
	return v
}

func viewOf(s layout.Spec, state string) laneView {
	return laneView{Stream: s.Stream, Kind: s.Kind, Level: s.Name, Delay: s.Delay.Seconds(), State: state, spec: s}
}

// byWay orders lanes as messages pass them: the intake, the levels, retries, dead letters.
func byWay(a, b laneView) int {
	kinds := []layout.Kind{layout.Intake, layout.Level, layout.Retry, layout.Dead}
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Delay, b.Delay),
		strings.Compare(a.Stream, b.Stream))
}

// fill asks the leader of a lane's stream how it is.
func (o *operator) fill(ctx context.Context, l *laneView, n instances) {
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	s, err := o.js.Stream(ctx, l.Stream)
	if err != nil {
		l.State, l.Error = stateSilent, err.Error()
		return
	}
	l.info = s.CachedInfo()
	l.Pending, l.Bytes = l.info.State.Msgs, l.info.State.Bytes
	if l.State == stateServing && isFull(l.info) {
		l.State = stateFull
	}
	if l.Kind == layout.Dead || l.State == stateBroken {
		return
	}
	if l.Pending > 0 {
		if err := o.fillHead(ctx, l); err != nil {
			l.Error = err.Error()
		}
	}
	if who, as, owned := n.owner(l.Stream); owned {
		l.Instance, l.Held, l.Read, l.Resumes = who, as.Held, as.Read, as.ResumesAt
		l.Owner = ownerAs(as, l.info.TimeStamp)
		return
	}
	// An older broker does not answer, and there may be one in the middle of an upgrade.
	consumers, err := o.consumers(ctx, l.Stream, l.info)
	switch {
	case err != nil:
		l.Error = err.Error()
	case isRead(l.info.TimeStamp, consumers):
		l.Owner = ownerRead
	case n.refused != nil:
		l.Owner = ownerUnknown
	default:
		l.Owner = ownerNobody
	}
}

// ownerAs is what an instance says of a lane that it owns.
func ownerAs(l broker.LaneAnswer, now time.Time) string {
	switch {
	case !l.Live || l.InDoubt:
		return ownerStopped
	case l.Full || l.ResumesAt.Sub(now) > earliness:
		return ownerLater
	}
	return ownerRead
}

// settle says nobody of lanes that are not known about, where nobody reads any: a broker that rests in some reads others.
func (v *lanesView) settle() {
	if slices.ContainsFunc(v.Lanes, func(l laneView) bool { return l.Owner == ownerRead }) {
		return
	}
	for i := range v.Lanes {
		if v.Lanes[i].Owner == ownerUnknown {
			v.Lanes[i].Owner = ownerNobody
		}
	}
}

// fillHead reads the first message. That it has moved on meanwhile is no error.
func (o *operator) fillHead(ctx context.Context, l *laneView) error {
	in, err := o.stored(ctx, l.Stream, l.info.State.FirstSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	leaves := in.At
	switch request, problem := o.streams.Policy().Parse(in); {
	case problem == nil:
		l.HeadDue = request.When()
		leaves = o.streams.Leaves(l.spec, in.At, request)
	case problem.Code == message.NewerFormat:
		l.Error = newerMessage
		return nil
	default:
		l.HeadDead = string(problem.Code)
	}
	if late := l.info.TimeStamp.Sub(leaves); late >= lateFrom {
		l.Overdue = late.Seconds()
	}
	return nil
}

// consumers are those of a stream; there is nothing to ask when it has none.
func (o *operator) consumers(ctx context.Context, stream string, info *jetstream.StreamInfo) ([]jetstream.ConsumerInfo, error) {
	if info.State.Consumers == 0 {
		return nil, nil
	}
	var answer struct {
		Consumers []jetstream.ConsumerInfo `json:"consumers"`
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	err := o.api.Ask(ctx, "CONSUMER.LIST."+stream, map[string]int{"offset": 0}, &answer)
	return answer.Consumers, err
}

// table asks which instance owns what; where instances do not share the work there is nothing to ask.
func (o *operator) table(ctx context.Context, found []layout.Spec) (lease.Table, error) {
	i := slices.IndexFunc(found, func(s layout.Spec) bool { return s.Kind == layout.Owners && s.Format <= layout.Format })
	if i < 0 {
		return lease.Table{}, nil
	}
	names := o.streams.Policy().Names
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	m, err := o.api.Last(ctx, found[i].Stream, names.OwnersTable())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lease.Table{}, nil
	}
	if err != nil {
		return lease.Table{}, err
	}
	return lease.ParseTable(m.Data)
}

// isRead reports whether somebody waits for a lane's messages, or was just given some. A consumer outlives the broker that
// made it by minutes, so that there is one says nothing; and a broker that reads no further for now may have none.
func isRead(now time.Time, consumers []jetstream.ConsumerInfo) bool {
	return slices.ContainsFunc(consumers, func(c jetstream.ConsumerInfo) bool {
		last := c.Delivered.Last
		return strings.HasPrefix(c.Name, lane.ConsumerPrefix) && (c.NumWaiting > 0 || last != nil && now.Sub(*last) < recently)
	})
}

// isFull reports whether a stream is at a limit of its own.
func isFull(info *jetstream.StreamInfo) bool {
	c, s := info.Config, info.State
	return c.MaxMsgs > 0 && float64(s.Msgs) >= fullAt*float64(c.MaxMsgs) ||
		c.MaxBytes > 0 && float64(s.Bytes) >= fullAt*float64(c.MaxBytes)
}

func (v *lanesView) sum() {
	v.Time = time.Now()
	for _, l := range v.Lanes {
		if l.info != nil {
			v.Time = l.info.TimeStamp
		}
		if l.Kind == layout.Dead {
			v.Totals.Dead += l.Pending
			continue
		}
		v.Totals.Pending += l.Pending
		v.Totals.Overdue = max(v.Totals.Overdue, l.Overdue)
		if l.Owner == ownerNobody || l.Owner == ownerStopped {
			v.Totals.Unread++
		}
	}
	v.Time = v.Time.UTC()
}
