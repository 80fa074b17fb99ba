package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/lane"
	"delaybroker/broker/lease"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

const (
	// recently is how long ago a consumer may have got a message to count as read, although no pull is waiting.
	recently = 5 * time.Second
	// earliness is how far ahead a time of resuming must be to count as the future: clocks differ.
	earliness = time.Second
)

// Owner is whether somebody reads a lane.
type Owner string

// What can be known of a lane's owner.
const (
	OwnerRead    Owner = "read"    // an instance reads it
	OwnerLater   Owner = "later"   // its instance holds what is due soon, or all it may, and reads on in time
	OwnerStopped Owner = "stopped" // its instance cannot read it at the moment, or may not be its owner any more
	OwnerNobody  Owner = "nobody"  // no instance owns it
	OwnerUnknown Owner = "unknown" // the instances may not be asked, or do not answer
)

// fillOwner takes the word of an instance that provably says that it owns the lane. An older broker does not answer, or
// seals no answer, and there may be one in the middle of an upgrade: it is known by its consumer.
func (i *Inspector) fillOwner(ctx context.Context, l *Lane, n Instances) {
	if who, as, owned := n.owner(l.Stream); owned {
		l.Instance, l.Held, l.Read, l.Resumes = who, as.Held, as.Read, as.ResumesAt
		l.Newer, l.Format = as.Newer, n.formatOf(who)
		l.Owner = ownerAs(as, l.Info.TimeStamp)
		return
	}
	consumers, err := i.consumers(ctx, l.Stream, l.Info)
	switch {
	case err != nil:
		l.Error = err.Error()
	case isRead(l.Info.TimeStamp, consumers):
		l.Owner = OwnerRead
	case n.Refused != nil, len(n.Proven) == 0:
		l.Owner = OwnerUnknown // see settle
	default:
		l.Owner = OwnerNobody
	}
}

// ownerAs is what an instance says about a lane that it owns.
func ownerAs(l stats.LaneAnswer, now time.Time) Owner {
	switch {
	case !l.Live || l.InDoubt:
		return OwnerStopped
	case l.Full || l.ResumesAt.Sub(now) > earliness:
		return OwnerLater
	}
	return OwnerRead
}

// consumers are those of a stream; there is nothing to ask when it has none.
func (i *Inspector) consumers(
	ctx context.Context, stream string, info *jetstream.StreamInfo,
) ([]jetstream.ConsumerInfo, error) {
	if info.State.Consumers == 0 {
		return nil, nil
	}
	var answer struct {
		Consumers []jetstream.ConsumerInfo `json:"consumers"`
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	err := i.api.Ask(ctx, "CONSUMER.LIST."+stream, map[string]int{"offset": 0}, &answer)
	return answer.Consumers, err
}

// isRead reports whether somebody waits for a lane's messages, or was just given some. A consumer alone proves nothing:
// it outlives its broker by minutes. A broker that rests may have none.
func isRead(now time.Time, consumers []jetstream.ConsumerInfo) bool {
	return slices.ContainsFunc(consumers, func(c jetstream.ConsumerInfo) bool {
		last := c.Delivered.Last
		return strings.HasPrefix(c.Name, lane.ConsumerPrefix) &&
			(c.NumWaiting > 0 || last != nil && now.Sub(*last) < recently)
	})
}

// table asks which instance owns which lane. Where instances do not share lanes, there is no table.
func (i *Inspector) table(ctx context.Context, found []streams.Spec) (lease.Table, error) {
	at := slices.IndexFunc(found, func(s streams.Spec) bool {
		return s.Kind == streams.Owners && s.Format <= streams.Format
	})
	if at < 0 {
		return lease.Table{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	m, err := i.api.Last(ctx, found[at].Stream, i.names.OwnersTable())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lease.Table{}, nil
	}
	if err != nil {
		return lease.Table{}, err
	}
	return lease.ParseTable(m.Data)
}

// settle changes unknown owners to nobody if no lane is read at all. A broker that may not answer can rest in some
// lanes, but it would read others.
func settle(lanes []Lane) {
	if slices.ContainsFunc(lanes, func(l Lane) bool { return l.Owner == OwnerRead }) {
		return
	}
	for i := range lanes {
		if lanes[i].Owner == OwnerUnknown {
			lanes[i].Owner = OwnerNobody
		}
	}
}
