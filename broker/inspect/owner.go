package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/fault"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lease"
	"delaybroker/broker/stats"
	"delaybroker/broker/streams"
)

const (
	// An owner whose memory is not full has the state OwnerWaits only if it resumes reading more than minWait from now. A
	// shorter time may be a difference of clocks.
	minWait = time.Second
	// maxClaimAge is the maximum age of the claim of an instance that works. A stand-by takes over from an instance whose
	// claim is older.
	maxClaimAge = 6 * time.Second
)

// Owner is the state of a lane's reader.
type Owner string

// The states of a lane's reader.
const (
	OwnerReads   Owner = "read"    // an instance reads the lane
	OwnerWaits   Owner = "later"   // the owner's memory is full, or has all messages that are due soon
	OwnerStopped Owner = "stopped" // the owner cannot work the lane now, or may no longer own the lane
	NoOwner      Owner = "nobody"  // no instance owns the lane
	OwnerUnknown Owner = "unknown" // the owner may be an instance that did not answer
)

// setOwner sets the reader's state from the sealed status of the instance that owns the lane. Without one, the owner is
// unknown if the claim shows that an instance works which did not answer, or if the claim cannot be read.
func (l *Lane) setOwner(n Instances, working string, claimErr error) {
	if l.Info == nil || !l.needsOwner() {
		return
	}
	answer, lane, owned := n.owner(l.Stream)
	switch {
	case owned:
		l.Instance, l.Format = answer.Instance, answer.Format
		l.Held, l.LastRead, l.ResumesAt, l.NewerMessages = lane.Held, lane.Read, lane.ResumesAt, lane.NewerMessages
		l.Owner, l.Fault = ownerState(lane, l.Info.TimeStamp), lane.Fault
		if l.Owner != OwnerStopped {
			l.setArrived(lane)
		}
	case claimErr != nil:
		l.Owner, l.Error = OwnerUnknown, cmp.Or(l.Error, claimErr.Error())
	case working == "" || slices.ContainsFunc(n.ProvenAnswers,
		func(a stats.InstanceStatus) bool { return a.Instance == working }):
		l.Owner = NoOwner
	default:
		l.Owner, l.Instance = OwnerUnknown, working
	}
	if (l.State == Serving || l.State == Retiring) && (l.NewerMessages > 0 || l.unreadable(l.format)) {
		l.State = TooNew
	}
}

// setArrived sets what only the owner knows: the first messages may be delivered, and not removed yet.
func (l *Lane) setArrived(lane stats.LaneAnswer) {
	if l.Kind == streams.Retry { // for its owner, a message is overdue from its due time on
		l.Overdue = min(l.Overdue, lane.Overdue)
	} else {
		l.Overdue = lane.Overdue
	}
	if l.Kind != streams.Timers && lane.Arrived <= l.Info.State.LastSeq {
		l.arrived = lane.Arrived
	}
}

// isStopped reports whether the owner cannot work the lane now, or may no longer own it.
func isStopped(l stats.LaneAnswer) bool {
	return !l.Live || l.InDoubt || l.Unworked > 0 || l.Fault != nil && l.Fault.Cause != fault.Other
}

// ownerState derives the reader's state from the status of the lane's owner.
func ownerState(l stats.LaneAnswer, now time.Time) Owner {
	switch {
	case isStopped(l):
		return OwnerStopped
	case l.Full || l.ResumesAt.Sub(now) > minWait:
		return OwnerWaits
	}
	return OwnerReads
}

// claim reads the claim of the active instance. The claim is empty if its stream or its record is missing.
func (i *Inspector) claim(ctx context.Context, found []streams.Spec) (lease.Claim, error) {
	owners, ok := streams.SpecOfKind(found, streams.Owners)
	if !ok {
		return lease.Claim{}, nil
	}
	m, err := i.api.Last(ctx, owners.Stream, i.names.OwnersClaim())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lease.Claim{}, nil
	}
	if err != nil {
		return lease.Claim{}, err
	}
	return lease.ParseClaim(m.Data)
}

// working returns the instance that works the lanes, by its claim; empty if the claim is too old.
func (i *Inspector) working(ctx context.Context, found []streams.Spec) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	claim, err := i.claim(ctx, found)
	if err != nil || claim.Active.ID == "" {
		return "", err
	}
	owners, _ := streams.SpecOfKind(found, streams.Owners)
	s, err := i.JetStream.Stream(ctx, owners.Stream)
	if err != nil {
		return "", err
	}
	if info := s.CachedInfo(); info.TimeStamp.Sub(info.State.LastTime) > maxClaimAge {
		return "", nil
	}
	return claim.Active.ID, nil
}
