package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Entries reads the entries of the timers' stream.
type Entries struct {
	API    jsapi.Client
	Policy message.Policy
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // asks the stream's leader for its state
}

// Entries returns a reader of the timers' entries.
func (t *Timers) Entries() Entries {
	return Entries{API: t.API, Policy: t.Policy, Sample: t.quorateSample}
}

// LastEntry reads the last entry of a timer's subject from the leader of the stream. The caller expects a sequence
// of at least generation. A deposed leader may return no entry, or one with a lower sequence. In these two cases,
// LastEntry calls from.Sample to find a leader that a majority follows, and reads the last entry again.
func LastEntry(ctx context.Context, from Entries, subject string, generation uint64) (timer.State, error) {
	stream := from.Policy.Names.TimersStream()
	var end lane.Sample // zero if from.Sample was not called
	m, err := from.API.Last(ctx, stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence < generation {
		if end, err = from.Sample(ctx, stream); err != nil {
			return timer.State{}, err
		}
		if !end.Quorate {
			return timer.State{}, ErrLeader
		}
		if m, err = from.API.Last(ctx, stream, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			return timer.State{NoEntry: true, LastSeq: end.LastSeq, Created: end.Created}, nil
		}
	}
	if err == nil && m.Subject != subject {
		err = ErrLeader
	}
	if err != nil {
		return timer.State{LastSeq: end.LastSeq, Created: end.Created}, err
	}
	state := from.State(m)
	state.LastSeq, state.Created = max(end.LastSeq, m.Sequence), end.Created
	return state, nil
}

// Next reads the first entry of a timer's subject at or above a sequence. Ok is false if the leader has no such entry.
// Next does not check whether a majority follows the leader.
func (e Entries) Next(ctx context.Context, subject string, from uint64) (m jsapi.Message, ok bool, err error) {
	m, err = e.API.Next(ctx, e.Policy.Names.TimersStream(), from, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return m, false, nil
	case err == nil && (m.Subject != subject || m.Sequence < from):
		err = ErrLeader
	}
	return m, err == nil, err
}

// State returns the state of a timer whose last entry is m.
func (e Entries) State(m jsapi.Message) timer.State {
	in := m.Incoming(e.Policy.Names.TimersStream())
	return timer.State{
		LastSeq: m.Sequence, Sequence: m.Sequence, At: m.Time, Entry: entry.Parse(e.Policy, in), Message: in,
	}
}

// electionWait is the time after which quorateSample gives up. The followers of a new leader answer in less time.
const electionWait = 4 * time.Second

// Now returns the time of the leader of the timers' stream, whose clock decides when a timer is due. Now asks the
// leader, or adds the elapsed time to an earlier answer, if Now asked at most [leader.Trust] ago. With an earlier
// answer, the result may be ahead of the leader's time, by at most the duration of that question.
func (t *Timers) Now(ctx context.Context) (time.Time, error) {
	t.mu.Lock()
	now, ok := t.leaderTime.upperBound(time.Now())
	t.mu.Unlock()
	if ok {
		return now, nil
	}
	return t.exactNow(ctx)
}

// exactNow asks the leader for its time. The result is a time between the call and the return.
func (t *Timers) exactNow(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	asked := time.Now()
	s, err := t.sample(ctx, t.Policy.Names.TimersStream())
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the stream of timers: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked.After(t.leaderTime.askedAt) { // a concurrent call may have kept the answer to a later question
		t.leaderTime = leaderTime{s.ServerTime, asked}
	}
	return s.ServerTime, nil
}

// leaderTime is a leader's answer to a question about its time.
type leaderTime struct {
	answer  time.Time // by the leader's clock
	askedAt time.Time // local, with a monotonic reading; zero before the first question
}

// upperBound returns an upper bound of the leader's time when this host's clock shows local. The bound assumes that the
// leader answered as soon as it was asked. If ok is false, there is no recent answer, or the machine was perhaps
// suspended meanwhile: then its monotonic clock stood still, and its wall clock did not.
func (l leaderTime) upperBound(local time.Time) (now time.Time, ok bool) {
	const maxSuspension = time.Second // a correction of the wall clock looks the same, and is usually shorter
	elapsed := local.Sub(l.askedAt)
	suspension := local.Round(0).Sub(l.askedAt.Round(0)) - elapsed
	ok = !l.askedAt.IsZero() && elapsed <= leader.Trust && suspension.Abs() <= maxSuspension
	return l.answer.Add(elapsed), ok
}

// sample asks the stream's leader for its state.
func (t *Timers) sample(ctx context.Context, stream string) (lane.Sample, error) {
	var info jetstream.StreamInfo
	if err := t.API.Ask(ctx, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(&info, time.Now()), nil // the local time measures the age of the answer
}

// quorateSample returns the state of the stream from a leader that a majority follows. A new leader does not know its
// followers yet, so quorateSample asks again. It returns ErrLeader after electionWait, or if ctx ends after the
// first answer.
func (t *Timers) quorateSample(ctx context.Context, stream string) (lane.Sample, error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		s, err := t.sample(ctx, stream)
		switch {
		case tries > 1 && ctx.Err() != nil, err == nil && !s.Quorate && time.Since(began) >= electionWait:
			return s, ErrLeader
		case err != nil || s.Quorate:
			return s, err
		}
		WaitToRetry(ctx)
	}
}
