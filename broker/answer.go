package broker

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
)

const (
	// maxQueries is the maximum number of waiting queries. The instance drops further queries.
	maxQueries = 16
	// answerInterval is the pause after an answer. It bounds the cost of an operator's program that sends queries in a
	// loop.
	answerInterval = 5 * time.Millisecond
	// largeInterval replaces answerInterval after a query with options, whose answer may have 30 KB.
	largeInterval = 200 * time.Millisecond
)

// Answer is the report of a running instance about itself.
type Answer = stats.Answer

// Headers of a query. HeaderHistory requests a history in the answer: HistoryHour or HistoryDay. HeaderTargets, with
// any non-empty value, requests the deliveries to each target. HeaderExcept names the instance that sends the query for
// its page. That instance does not answer its own query.
const (
	HeaderHistory = "Delay-History"
	HistoryHour   = "1h"
	HistoryDay    = "24h"
	HeaderTargets = "Delay-Targets"
	HeaderExcept  = "Delay-Except"
)

// QueryOptions are the options of a query. The zero value requests only the state of each instance.
type QueryOptions struct {
	History string // HistoryHour or HistoryDay; empty for no history
	Targets bool   // requests the deliveries to each target
	Except  string // the instance that sends the query; empty for other senders
}

// Header returns the headers of a query.
func (o QueryOptions) Header() nats.Header {
	h := nats.Header{}
	message.Put(h, HeaderHistory, o.History)
	message.Put(h, HeaderExcept, o.Except)
	if o.Targets {
		h.Set(HeaderTargets, "true")
	}
	return h
}

type query struct {
	reply string
	QueryOptions
}

// Instance returns the name of this instance in its answers.
func (b *Broker) Instance() string { return b.id }

// Answer returns this instance's report about itself.
func (b *Broker) Answer() Answer { return b.AnswerOf(b.Status()) }

// AnswerOf is like Answer, for a status that the caller has just read.
func (b *Broker) AnswerOf(s Status) Answer {
	return Answer{
		Instance: b.id, Ready: s.Ready, Draining: s.Draining, Journal: s.Journal.Kept, SingleInstance: b.cfg.MaxOwners == 0,
		Version: b.cfg.Version, Format: b.cfg.Format, Users: b.users, Refused: b.refusals.Recent(time.Now()),
		Writer: b.journalWriter.Load().State(),
		Lanes:  s.LaneAnswers(),
		Totals: s.Totals(b.startTime),
		Pauses: &stats.PausesAnswer{Applied: b.pauses.AppliedVersion(), Record: b.pauses.Record()},
	}
}

// answer replies to the queries of operators until ctx ends, and passes announcements of pauses to the keeper. Without
// the permission to subscribe or to reply, the instance runs on, and answers no queries.
//
// The operator chooses the subject of the reply. The broker's connection may publish on subjects that the operator may
// not use, such as those of the JetStream API. The server would treat a reply there as a request, for example to purge
// a stream. So answer replies only below StatusAnswers, where no program acts on messages.
func (b *Broker) answer(ctx context.Context) {
	queries := make(chan query, maxQueries)
	sub, err := b.links.Control.Subscribe(b.names.StatusCall(), func(m *nats.Msg) {
		if len(m.Data) > 0 {
			b.pauses.Receive(pause.ParseAnnouncement(m))
		}
		if !strings.HasPrefix(m.Reply, b.names.StatusAnswers()) || m.Header.Get(HeaderExcept) == b.id {
			return
		}
		options := QueryOptions{History: m.Header.Get(HeaderHistory), Targets: m.Header.Get(HeaderTargets) != ""}
		select {
		case queries <- query{m.Reply, options}:
		default:
		}
	})
	if err != nil {
		b.log.Warn("cannot subscribe to queries: this instance is missing from the output of operators' commands", "err", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is closed
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-queries:
			if err := b.reply(q); err != nil {
				b.log.Debug("cannot answer an operator's query", "err", err)
			}
			interval := answerInterval
			if q.QueryOptions != (QueryOptions{}) {
				interval = largeInterval
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
		}
	}
}

func (b *Broker) reply(q query) error {
	a := b.Answer()
	a.History = b.history(q.History, time.Now())
	if q.Targets {
		a.Targets = b.Targets()
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: q.reply, Data: body, Header: nats.Header{}}
	message.Put(m.Header, message.HeaderSeal, b.keys.Policy.Keys.Seal(q.reply, body))
	return b.links.Control.PublishMsg(m)
}
