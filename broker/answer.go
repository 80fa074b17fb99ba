package broker

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/history"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
)

const (
	// answersWaiting is how many questions may wait for an answer. Further questions are dropped: an operator who still
	// wants an answer asks again.
	answersWaiting = 16
	// answerPause is the least time between two answers, so that an operator who asks all the time costs next to nothing.
	answerPause = 5 * time.Millisecond
)

// Answer is what a running instance reports of itself to an operator who asks on message.Names.StatusCall. It is for
// display only: in an account where other clients may publish below StatusAnswers, such a client may have written it.
// Whoever does something on its account looks at its seal.
type Answer struct {
	Instance string       `json:"instance"` // unique among the running instances
	Ready    bool         `json:"ready"`
	Draining bool         `json:"draining,omitempty"`
	Journal  bool         `json:"journal,omitempty"` // it keeps one
	Alone    bool         `json:"alone,omitempty"`   // it shares the work with no other instance, by its settings
	Lanes    []LaneAnswer `json:"lanes"`             // the lanes that the instance owns
	Totals   *Totals      `json:"totals,omitempty"`  // what it has done since it started; nil of an older broker
	// History is what it did lately, where that was asked for and is kept.
	History *history.Series `json:"history,omitempty"`
	// Pauses is by which list of paused targets the instance acts. A broker that knows nothing of pauses says nothing.
	Pauses *PausesAnswer `json:"pauses,omitempty"`
}

// PausesAnswer is the list of paused targets as an instance knows it.
type PausesAnswer struct {
	Applied int64        `json:"applied"`         // the version by which it acts for certain
	Record  pause.Record `json:"record,omitzero"` // the list that it knows
}

// LaneAnswer is a lane as its owner sees it.
type LaneAnswer struct {
	Stream    string    `json:"stream"`
	Live      bool      `json:"live"`                // its consumer is believed alive
	InDoubt   bool      `json:"in_doubt,omitempty"`  // the ownership is not certain, and nothing is delivered until it is
	Read      uint64    `json:"read"`                // the last sequence read; zero before the first
	Held      int       `json:"held"`                // messages in memory
	Full      bool      `json:"full,omitempty"`      // memory is full: reading goes on when messages leave
	ResumesAt time.Time `json:"resumes_at,omitzero"` // reading rests until then: nothing unread is due before
	Pending   uint64    `json:"pending"`             // messages that have not arrived elsewhere, a few seconds old
	Overdue   float64   `json:"overdue_seconds"`     // how long ago the oldest message should have left
}

// Totals are counts since an instance started.
type Totals struct {
	Started   time.Time `json:"started"`
	Delivered uint64    `json:"delivered"`
	Refused   uint64    `json:"refused"` // attempts, by the targets
	Dead      uint64    `json:"dead_letters"`
}

// HeaderHistory is what a question says that is to be answered with a history as well: HistoryHour or HistoryDay.
const (
	HeaderHistory = "Delay-History"
	HistoryHour   = "1h"
	HistoryDay    = "24h"
)

// historyPause is the least time between two answers with a history, which are some thirty kilobytes.
const historyPause = 200 * time.Millisecond

// a question of an operator.
type question struct{ reply, history string }

// Answer is what this instance reports of itself.
func (b *Broker) Answer() Answer {
	s := b.Status()
	a := Answer{
		Instance: b.id, Ready: s.Ready, Draining: s.Draining, Journal: s.Journal.Kept, Alone: b.streams.cfg.MaxOwners == 0,
		Lanes:  []LaneAnswer{},
		Pauses: &PausesAnswer{Applied: b.pauses.Applied(), Record: b.pauses.Record()},
		Totals: s.totals(b.started),
	}
	for _, l := range s.Lanes {
		if l.Owned {
			a.Lanes = append(a.Lanes, LaneAnswer{
				Stream: l.Stream, Live: l.Live, InDoubt: l.InDoubt, Read: l.Read, Held: l.Held, Full: l.Full,
				ResumesAt: l.ResumesAt, Pending: l.Pending, Overdue: l.Overdue.Seconds(),
			})
		}
	}
	return a
}

// answer replies to operators who ask on the control link, until ctx ends. An instance without the right to reply works
// all the same.
//
// The operator chooses the subject of the reply. Our connection may publish on subjects that the operator may not use,
// such as those of the JetStream API: a reply there would be taken for a request, to purge a stream for example. So a
// reply is sent only below StatusAnswers, where nobody acts on messages.
func (b *Broker) answer(ctx context.Context) {
	asked := make(chan question, answersWaiting)
	sub, err := b.conns.Control.Subscribe(b.streams.names.StatusCall(), func(m *nats.Msg) {
		if len(m.Data) > 0 {
			b.pauses.Hear(pause.Announced(m))
		}
		if !strings.HasPrefix(m.Reply, b.streams.names.StatusAnswers()) {
			return
		}
		select {
		case asked <- question{m.Reply, m.Header.Get(HeaderHistory)}:
		default:
		}
	})
	if err != nil {
		b.log.Warn("nobody can ask this instance how it is", "err", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails when the connection is closed
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-asked:
			if err := b.tell(q); err != nil {
				b.log.Debug("answering an operator", "err", err)
			}
			pause := answerPause
			if q.history != "" {
				pause = historyPause
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

func (b *Broker) tell(q question) error {
	a := b.Answer()
	a.History = b.history(q.history, time.Now())
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: q.reply, Data: body, Header: nats.Header{}}
	if seal := b.streams.keys.policy.Keys.Seal(q.reply, body); seal != "" {
		m.Header.Set(message.HeaderSeal, seal)
	}
	return b.conns.Control.PublishMsg(m)
}
