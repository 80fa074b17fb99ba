package inspect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/fault"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/pause"
	"delaybroker/broker/streams"
)

// Lanes is a snapshot of all lanes, sorted by [streams.CompareLanes]. The dead letters are last.
type Lanes struct {
	Time   time.Time `json:"time"` // by the server's clock, or without any answer by the local clock
	Lanes  []Lane    `json:"lanes"`
	Totals struct {
		Pending     uint64  `json:"pending"` // without dead letters; a named timer counts once
		Dead        uint64  `json:"dead_letters"`
		Overdue     float64 `json:"overdue_seconds"` // maximum of all lanes
		UnreadLanes int     `json:"unread"`          // lanes without an owner, or with an owner that cannot read them
	} `json:"totals"`
	Paused []Pause `json:"paused"` // empty if the list of pauses could not be read

	list     *pause.List
	Unopened *pause.List `json:"-"` // the newest list of pauses, if this program lacks the secret that sealed it
}

const noLeader = "the stream has no leader"

// StreamList is the result of listing the streams of the account.
type StreamList struct {
	Found      []streams.Spec // the broker's streams, recognized by their metadata
	Infos      map[string]*jetstream.StreamInfo
	Leaderless []string // names of the streams without a leader
}

// Streams lists the streams. It requests the names of the streams without a leader only if one of the broker's streams
// is missing.
func (i *Inspector) Streams(ctx context.Context) (list StreamList, err error) {
	list.Found, list.Infos, err = i.streams.Provisioner(i.JetStream).Find(ctx)
	if err != nil || len(streams.Compare(i.Wanted(), list.Infos).MissingStreams) == 0 {
		return list, err
	}
	_, list.Leaderless, err = i.api.Streams(ctx)
	return list, err
}

// Lanes returns a snapshot of all lanes. During a handover between two instances, a lane has no owner. So while a lane
// has no owner, Lanes repeats the request to the instances, for at most the time handover.
func (i *Inspector) Lanes(ctx context.Context, handover time.Duration) (Lanes, error) {
	listCtx, cancelTimeout := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancelTimeout()
	listCtx, cancelList := i.WithRefusal(listCtx)
	defer cancelList()
	list, err := i.Streams(listCtx)
	if err != nil {
		return Lanes{}, Cause(listCtx, err)
	}
	_ = i.streams.Learn(list.Found)         // an error means no secret: then every answer counts as proven
	askCtx, cancelAsk := i.WithRefusal(ctx) // a user without permission for this request may still read the streams
	instances, _ := i.askInstances(askCtx, lanesOf(list.Found), handover, false)
	cancelAsk()
	readCtx, cancelRead := i.WithRefusal(ctx)
	defer cancelRead()
	v := i.readLanes(readCtx, list, instances)
	// One refusal fails the call: an incomplete result would mislead.
	return v, Cause(readCtx, context.Cause(readCtx))
}

// SettledLanes returns a snapshot of all lanes, and the answers of the instances. Before the snapshot, it repeats the
// request to the instances until each lane has one owner that reads it, for at most maxConflict.
func (i *Inspector) SettledLanes(ctx context.Context, list StreamList) (v Lanes, n Instances) {
	_ = i.streams.Learn(list.Found) // an error means no secret: then every answer counts as proven
	n.Refusal = i.request(ctx, maxConflict+jsapi.Timeout, func(ctx context.Context) (err error) {
		n, err = i.askInstances(ctx, lanesOf(list.Found), maxTakeover, true)
		return err
	})
	for began := time.Now(); len(n.ProvenAnswers) == 0 && n.Refusal == nil && time.Since(began) < maxClaimAge; {
		if working, _ := i.working(ctx, list.Found); working == "" { // a claim outlives its instance by some seconds
			break
		}
		time.Sleep(askInterval)
	}
	return i.readLanes(ctx, list, n), n
}

// lanesOf returns the streams that need an owner. The lane of a pause has no reader while the pause lasts.
func lanesOf(found []streams.Spec) []string {
	var names []string
	for _, s := range found {
		switch s.Kind {
		case streams.Dead, streams.Owners, streams.Journal, streams.Paused:
			continue
		}
		if s.MarksErr == nil {
			names = append(names, s.Stream)
		}
	}
	return names
}

// readLanes reads the state of the listed streams, and adds the missing streams.
func (i *Inspector) readLanes(ctx context.Context, list StreamList, instances Instances) Lanes {
	want := i.Wanted()
	lanes := existingLanes(want, list.Found)
	var filling sync.WaitGroup
	for n := range lanes {
		filling.Go(func() { i.fill(ctx, &lanes[n]) })
	}
	working, err := i.working(ctx, list.Found)
	read, _ := i.pauseStore().Read(ctx) // without the list, only the lanes are shown
	filling.Wait()
	for n := range lanes {
		lanes[n].setOwner(instances, working, err)
	}
	lanes = append(lanes, missingLanes(want, list)...)
	slices.SortFunc(lanes, func(a, b Lane) int { return streams.CompareLanes(a.spec, b.spec) })
	v := newLanes(lanes)
	v.Paused, v.list, v.Unopened = pausesOf(read.List), read.List, read.UnopenedList
	return v
}

func existingLanes(want, found []streams.Spec) []Lane {
	var lanes []Lane
	for _, s := range found {
		if s.Kind == streams.Owners || s.Kind == streams.Journal {
			continue
		}
		l := newLane(s, Serving)
		switch _, wanted := streams.SpecOf(want, s.Stream); {
		case s.MarksErr != nil:
			l.State, l.Error = Broken, s.MarksErr.Error()
		case !wanted:
			l.State = Retiring
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// missingLanes returns the lanes whose stream is missing, foreign or without a leader.
func missingLanes(want []streams.Spec, list StreamList) []Lane {
	var lanes []Lane
	c := streams.Compare(want, list.Infos)
	for _, w := range want {
		_, found := streams.SpecOf(list.Found, w.Stream)
		switch {
		case slices.Contains(list.Leaderless, w.Stream):
			l := newLane(w, Silent)
			l.Error = noLeader
			lanes = append(lanes, l)
		case slices.Contains(c.MissingStreams, w.Stream):
			lanes = append(lanes, newLane(w, Missing))
		case slices.Contains(c.ForeignStreams, w.Stream) && !found:
			lanes = append(lanes, newLane(w, Foreign))
		}
	}
	return lanes
}

func newLanes(lanes []Lane) Lanes {
	v := Lanes{Time: time.Now(), Lanes: lanes}
	for _, l := range lanes {
		if l.Info != nil {
			v.Time = l.Info.TimeStamp
		}
		if l.Kind == streams.Dead {
			v.Totals.Dead += l.Pending
			continue
		}
		if l.Kind != streams.Timers { // each pending timer has a marker in a level, which counts
			v.Totals.Pending += l.Pending
		}
		v.Totals.Overdue = max(v.Totals.Overdue, l.Overdue)
		if l.Owner == NoOwner || l.Owner == OwnerStopped {
			v.Totals.UnreadLanes++
		}
	}
	v.Time = v.Time.UTC()
	return v
}

// SetRates sets the rates at which messages entered and left each lane since an earlier snapshot, per second.
func (v *Lanes) SetRates(previous Lanes) {
	for n := range v.Lanes {
		l := &v.Lanes[n]
		base := previous.lane(l.Stream)
		if l.Info == nil || base.Info == nil || !l.Info.Created.Equal(base.Info.Created) {
			continue
		}
		seconds := l.Info.TimeStamp.Sub(base.Info.TimeStamp).Seconds()
		in := float64(l.Info.State.LastSeq) - float64(base.Info.State.LastSeq)
		out := in - (float64(l.Pending) - float64(base.Pending))
		if seconds > 0 && in >= 0 {
			l.InRate, l.OutRate = new(in/seconds), new(max(0, out/seconds)) // a new leader may lag, so out may be negative
		}
	}
}

// lane returns the lane of a stream, or an empty Lane.
func (v Lanes) lane(stream string) Lane {
	if n := slices.IndexFunc(v.Lanes, func(l Lane) bool { return l.Stream == stream }); n >= 0 {
		return v.Lanes[n]
	}
	return Lane{}
}

// TooLarge returns the lanes in which a message waits because it is larger than the server now accepts, even as a dead
// letter.
func (v Lanes) TooLarge() (lanes []string) {
	for _, l := range v.Lanes {
		if l.Fault != nil && l.Fault.Cause == fault.TooLarge {
			lanes = append(lanes, l.Stream)
		}
	}
	return lanes
}
