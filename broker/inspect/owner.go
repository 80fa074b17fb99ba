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
	// Without a waiting pull, a lane counts as read until maxIdle after its consumer's last delivery.
	maxIdle = 5 * time.Second
	// An owner whose memory is not full has the state OwnerWaits only if it resumes reading more than minWait from now. A
	// shorter time may be a difference of clocks.
	minWait = time.Second
)

// Owner is the state of a lane's reader.
type Owner string

// The states of a lane's reader.
const (
	OwnerReads   Owner = "read"    // an instance reads the lane
	OwnerWaits   Owner = "later"   // the owner's memory is full, or has all messages that are due soon
	OwnerStopped Owner = "stopped" // the owner cannot read the lane now, or may no longer own the lane
	NoOwner      Owner = "nobody"  // no instance owns the lane
	OwnerUnknown Owner = "unknown" // the owner may be an instance that did not answer
)

// fillOwner sets the reader's state from the sealed status of the instance that claims the lane. If no sealed status
// claims the lane, for example because the broker is old, fillOwner uses the state of the lane's consumers.
func (i *Inspector) fillOwner(ctx context.Context, l *Lane, n Instances) {
	if answer, lane, owned := n.owner(l.Stream); owned {
		l.Instance, l.Format = answer.Instance, answer.Format
		l.Held, l.LastRead, l.ResumesAt, l.NewerMessages = lane.Held, lane.Read, lane.ResumesAt, lane.NewerMessages
		l.Owner = ownerState(lane, l.Info.TimeStamp)
		return
	}
	consumers, err := i.consumers(ctx, l.Stream, l.Info)
	switch {
	case err != nil:
		l.Error = err.Error()
	case isRead(l.Info.TimeStamp, consumers):
		l.Owner = OwnerReads
	case n.Refusal != nil, len(n.ProvenAnswers) == 0:
		l.Owner = OwnerUnknown // see resolveUnknown
	default:
		l.Owner = NoOwner
	}
}

// ownerState derives the reader's state from the status of the lane's owner.
func ownerState(l stats.LaneAnswer, now time.Time) Owner {
	switch {
	case !l.Live || l.InDoubt:
		return OwnerStopped
	case l.Full || l.ResumesAt.Sub(now) > minWait:
		return OwnerWaits
	}
	return OwnerReads
}

// consumers returns the consumers of a stream. It sends no request if the stream has none.
func (i *Inspector) consumers(
	ctx context.Context, stream string, info *jetstream.StreamInfo,
) ([]jetstream.ConsumerInfo, error) {
	if info.State.Consumers == 0 {
		return nil, nil
	}
	var answer struct {
		Consumers []jetstream.ConsumerInfo `json:"consumers"`
	}
	err := i.api.Ask(ctx, "CONSUMER.LIST."+stream, map[string]int{"offset": 0}, &answer)
	return answer.Consumers, err
}

// isRead reports whether a consumer of a broker has a waiting pull, or has recently delivered a message. The existence
// of a consumer is no proof: a consumer outlives its broker by minutes.
func isRead(now time.Time, consumers []jetstream.ConsumerInfo) bool {
	return slices.ContainsFunc(consumers, func(c jetstream.ConsumerInfo) bool {
		last := c.Delivered.Last
		return strings.HasPrefix(c.Name, lane.ConsumerPrefix) &&
			(c.NumWaiting > 0 || last != nil && now.Sub(*last) < maxIdle)
	})
}

// table reads the instances' table of owners. The table is empty if its stream or the record of the table is
// missing, or if the stream has a newer format.
func (i *Inspector) table(ctx context.Context, found []streams.Spec) (lease.Table, error) {
	owners, ok := streams.SpecOfKind(found, streams.Owners)
	if !ok || owners.Format > streams.Format {
		return lease.Table{}, nil
	}
	m, err := i.api.Last(ctx, owners.Stream, i.names.OwnersTable())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lease.Table{}, nil
	}
	if err != nil {
		return lease.Table{}, err
	}
	return lease.ParseTable(m.Data)
}

// resolveUnknown changes unknown owners to nobody if no lane has a reader. A running broker reads at least one
// lane, or has filled its memory from that lane. The lane's consumer shows a reader even if the broker does not answer.
func resolveUnknown(lanes []Lane) {
	if slices.ContainsFunc(lanes, func(l Lane) bool { return l.Owner == OwnerReads || l.Owner == OwnerWaits }) {
		return
	}
	for i := range lanes {
		if lanes[i].Owner == OwnerUnknown {
			lanes[i].Owner = NoOwner
		}
	}
}
