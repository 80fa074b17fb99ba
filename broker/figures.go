package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/history"
)

// figuresTimeout is the timeout of reading or storing the figures. No delivery waits for them.
const figuresTimeout = 2 * time.Second

// recordHistory keeps the figures of the fleet, every ten seconds by the clock, until ctx ends. The active instance
// adds its counts, and stores the figures beside its claim. The others read them. So a take-over, or a restart of all
// instances, changes no past value on a page. Without a history, recordHistory does nothing.
func (b *Broker) recordHistory(ctx context.Context) {
	book := b.cfg.History
	if book == nil {
		return
	}
	b.readFigures(ctx)
	for {
		now, s, wait := time.Now(), b.Status(), time.Duration(0)
		book.Add(now, s.Active(), s.HistoryCounts())
		if s.Active() {
			b.figures.count(now, b.id, s)
			b.storeFigures(ctx, now)
		} else {
			b.figures.standBy(s)
			b.readFigures(ctx)
			wait = time.Second // until the active instance has stored the next step
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(now.Truncate(history.FineStep).Add(history.FineStep + wait).Sub(now)):
		}
	}
}

func (b *Broker) figuresAPI() jsapi.Client {
	return jsapi.Client{Conn: b.links.Control, API: b.cfg.APIPrefix, Timeout: figuresTimeout}
}

// storeFigures replaces the stored figures. A failure is the same as no write: the next one has all figures again.
func (b *Broker) storeFigures(ctx context.Context, now time.Time) {
	r := b.figures.record()
	r.Hour, r.Day = b.cfg.History.Hour(now), b.cfg.History.Day(now)
	body, err := json.Marshal(r)
	if err != nil || len(body) > int(b.links.Control.MaxPayload()) {
		return
	}
	subject := b.names.OwnersFigures()
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	message.Put(m.Header, message.HeaderSeal, b.keys.Policy.Keys.Seal(subject, body))
	if reply := b.figuresAPI().Publish(ctx, b.names.OwnersStream(), m); reply.Outcome() != jsapi.Stored {
		b.log.Debug("cannot store the figures of the page", "err", reply.Failure())
	}
}

// readFigures adds the stored figures. It ignores figures without a valid seal.
func (b *Broker) readFigures(ctx context.Context) {
	subject := b.names.OwnersFigures()
	m, err := b.figuresAPI().Last(ctx, b.names.OwnersStream(), subject)
	if err != nil {
		return // there are none, or the stream does not answer; the next step reads again
	}
	header, err := m.Header()
	note := message.Note{Subject: subject, Body: m.Data, Seal: header.Get(message.HeaderSeal)}
	if err != nil || !b.keys.Policy.Keys.Trusts(note) {
		return
	}
	var r figuresRecord
	if json.Unmarshal(m.Data, &r) == nil {
		b.cfg.History.Merge(r.Hour, r.Day)
		b.figures.inherit(r)
	}
}

// Targets returns the deliveries and refusals by target, since the first instance of the fleet that has kept figures.
// The rates are those of the latest step of ten seconds. Without a history, they are the counts of this instance, and
// there are no rates.
func (b *Broker) Targets() []stats.TargetAnswer {
	if targets := b.figures.record().Targets; targets != nil {
		return targets
	}
	return stats.TargetsSince(b.tally.Read().Targets, nil, 0)
}

// LaneHistory returns the pending messages of each lane at the latest steps of ten seconds, by stream.
func (b *Broker) LaneHistory() map[string][]uint64 { return b.figures.record().Lanes }

// Marks returns the take-overs, restarts and changes of pauses of the last day, the oldest first.
func (b *Broker) Marks() []stats.Mark { return b.figures.record().Marks }
