package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/leader"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
)

// Reader reads the stream of timers from its leader. Last and Next return jetstream.ErrMsgNotFound if there is no such
// entry. End may have an empty subject.
type Reader interface {
	Last(ctx context.Context, subject string) (message.Incoming, error)              // the last entry of a subject
	Next(ctx context.Context, subject string, from uint64) (message.Incoming, error) // the first entry from a sequence on
	End(ctx context.Context, subject string) (End, error)
}

// End is the end of the stream of timers, as its leader reports it.
type End struct {
	LastSeq    uint64    // the highest sequence that the stream has given
	Created    time.Time // when the stream was created
	ServerTime time.Time // by the leader's clock
	Quorate    bool      // a majority follows the leader
	Holds      bool      // the same leader has an entry of the subject; false also if the Reader does not know
}

// JetStream is the Reader of a stream on a server.
type JetStream struct {
	API    jsapi.Client
	Stream string
}

func (j JetStream) Last(ctx context.Context, subject string) (message.Incoming, error) {
	m, err := j.API.Last(ctx, j.Stream, subject)
	return m.Incoming(j.Stream), err
}

func (j JetStream) Next(ctx context.Context, subject string, from uint64) (message.Incoming, error) {
	m, err := j.API.Next(ctx, j.Stream, from, subject)
	return m.Incoming(j.Stream), err
}

func (j JetStream) End(ctx context.Context, subject string) (End, error) {
	var info jetstream.StreamInfo
	request := struct {
		Subject string `json:"subjects_filter,omitempty"`
	}{subject}
	if err := j.API.Ask(ctx, "STREAM.INFO."+j.Stream, request, &info); err != nil {
		return End{}, err
	}
	holds := subject != "" && len(info.State.Subjects) > 0
	return End{info.State.LastSeq, info.Created, info.TimeStamp, jsapi.Quorate(info.Cluster), holds}, nil
}

// Entries reads the entries of timers.
type Entries struct {
	Reader
	Policy message.Policy
}

func (t *Timers) reader() Reader {
	if t.Reader != nil {
		return t.Reader
	}
	return JetStream{t.API, t.Policy.Names.TimersStream()}
}

// Entries returns a reader of the timers' entries, whose End waits for a leader that a majority follows.
func (t *Timers) Entries() Entries { return Entries{electedReader{t.reader()}, t.Policy} }

// LastEntry reads the last entry of a timer's subject from the leader of the stream. The caller expects a sequence of
// at least generation. A deposed leader may return no entry, or one with a lower sequence. In these two cases,
// LastEntry asks for the end of the stream, to find a leader that a majority follows, and reads the last entry again.
// If that leader has an entry, it was another one that has none: then the error is ErrLeader. If elected is set,
// LastEntry begins with the search for such a leader.
func (e Entries) LastEntry(
	ctx context.Context, subject string, generation uint64, elected bool,
) (timer.State, error) {
	var end End // zero if it was not read
	var in message.Incoming
	var err error
	if !elected {
		in, err = e.Last(ctx, subject)
	}
	if elected || errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && in.Sequence < generation {
		if end, err = e.End(ctx, subject); err != nil {
			return timer.State{}, err
		}
		if !end.Quorate {
			return timer.State{}, ErrLeader
		}
		if in, err = e.Last(ctx, subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			if end.Holds {
				return timer.State{}, ErrLeader
			}
			return timer.State{NoEntry: true, LastSeq: end.LastSeq, Created: end.Created}, nil
		}
	}
	if err == nil && in.Subject != subject {
		err = ErrLeader
	}
	if err != nil {
		return timer.State{LastSeq: end.LastSeq, Created: end.Created}, err
	}
	state := e.State(in)
	state.LastSeq, state.Created = max(end.LastSeq, in.Sequence), end.Created
	return state, nil
}

// Next reads the first entry of a timer's subject at or above a sequence. Ok is false if the leader has no such entry.
// Next does not check whether a majority follows the leader.
func (e Entries) Next(ctx context.Context, subject string, from uint64) (in message.Incoming, ok bool, err error) {
	in, err = e.Reader.Next(ctx, subject, from)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return in, false, nil
	case err == nil && (in.Subject != subject || in.Sequence < from):
		err = ErrLeader
	}
	return in, err == nil, err
}

// State returns the state of a timer whose last entry is in.
func (e Entries) State(in message.Incoming) timer.State {
	return timer.State{
		LastSeq: in.Sequence, Sequence: in.Sequence, At: in.At, Entry: entry.Parse(e.Policy, in), Message: in,
	}
}

// electionWait is the time after which electedReader gives up. The followers of a new leader answer in less time.
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
	end, err := t.reader().End(ctx, "")
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the stream of timers: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if asked.After(t.leaderTime.askedAt) { // a concurrent call may have kept the answer to a later question
		t.leaderTime = leaderTime{end.ServerTime, asked}
	}
	return end.ServerTime, nil
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

// electedReader is a Reader whose End waits for a leader that a majority follows. A new leader does not know its
// followers yet, so End asks again. It returns ErrLeader after electionWait, or if ctx ends after the first answer.
type electedReader struct{ Reader }

func (r electedReader) End(ctx context.Context, subject string) (End, error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		end, err := r.Reader.End(ctx, subject)
		switch {
		case tries > 1 && ctx.Err() != nil, err == nil && !end.Quorate && time.Since(began) >= electionWait:
			return end, ErrLeader
		case err != nil || end.Quorate:
			return end, err
		}
		WaitToRetry(ctx)
	}
}
