package page

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/store"
)

// SearchResult has the results of a search for a text, which may be a Delay-Id, a key, a target or a Nats-Msg-Id.
type SearchResult struct {
	Time    time.Time                `json:"time"`
	Message *inspect.Whereabouts     `json:"message"` // set for a whole Delay-Id, or the beginning of a found one
	Pending []inspect.PendingMessage `json:"pending"`
	Timers  []store.Row              `json:"timers"`
	Letters []Letter                 `json:"letters"`
	Target  bool                     `json:"target"`  // the text has the form of a target, or of a pattern
	Partial bool                     `json:"partial"` // there may be more messages, timers or letters
	Trouble []string                 `json:"trouble"` // the parts of the search that failed, each with the reason
}

// partTimeout is the timeout of each of the four parts of a search.
const partTimeout = questionTimeout / 4

// find searches the lanes, the timers and the dead letters. If one part fails, find returns the results of the others.
func (p *Page) find(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	query := strings.TrimSpace(v.Get("find"))
	if query == "" {
		return nil, fmt.Errorf("%w: find: want a Delay-Id, a key, a target or a Nats-Msg-Id", errRequest)
	}
	f := SearchResult{
		Pending: []inspect.PendingMessage{}, Timers: []store.Row{}, Letters: []Letter{}, Trouble: []string{},
		Target: message.ValidPattern(query),
	}
	line := shell(nil)
	part := func(name string, search func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, partTimeout)
		defer cancel()
		allowed, cancelAllowed := i.WithRefusal(ctx)
		defer cancelAllowed()
		if err := inspect.Cause(allowed, search(allowed)); err != nil {
			f.Trouble = append(f.Trouble, name+": "+text.Printable(err.Error(), 300))
		}
	}
	if ref, err := inspect.ParseMessageRef(query); err == nil {
		part("the message", func(ctx context.Context) error {
			w, err := i.Where(ctx, ref, maxRead, func(uint64, uint64) {})
			// A key may have the form of a partial Delay-Id, so a partial id without a message is not a result.
			if err == nil && (w.Found || !ref.Partial) {
				f.Message, line = &w, shell{"where"}.words(query)
			}
			return err
		})
	}
	part("pending messages", func(ctx context.Context) error {
		l, err := i.Pending(ctx, inspect.PendingQuery{Find: query, Limit: defaultRows, MaxRead: maxRead})
		f.Time, f.Partial = l.Time, l.More
		f.Pending = append(f.Pending, l.Messages...)
		return err
	})
	part("timers", func(ctx context.Context) error {
		l, err := i.Timers().List(ctx, store.Filter{Key: query}, store.Page{Limit: defaultRows})
		f.Partial = f.Partial || l.Next > 0
		f.Timers = append(f.Timers, l.Timers...)
		return err
	})
	part("dead letters", func(ctx context.Context) error {
		letters, err := i.Letters(ctx)
		if err != nil {
			return err
		}
		rows, more, err := listLetters(ctx, letters, deadletter.Filter{}, query, defaultRows)
		f.Letters, f.Partial = append(f.Letters, rows...), f.Partial || more
		return err
	})
	return answer{line.String(), f}, nil
}
