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

// Found holds the results of a search for one text: a Delay-Id, a key, a target or a Nats-Msg-Id.
type Found struct {
	Time    time.Time                `json:"time"`
	Message *inspect.Whereabouts     `json:"message"` // nil unless the text is a Delay-Id
	Pending []inspect.PendingMessage `json:"pending"`
	Timers  []store.Row              `json:"timers"`
	Letters []Letter                 `json:"letters"`
	Target  bool                     `json:"target"`  // the text may be a target, or a pattern
	Partial bool                     `json:"partial"` // not all messages were searched
	Trouble []string                 `json:"trouble"` // parts that could not be searched
}

// findParts divides the question's timeout: each part of a search may take 1/findParts of it.
const findParts = 3

// find searches the lanes, the timers and the dead letters. If one part fails, the results of the others remain.
func (p *Page) find(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	word := strings.TrimSpace(v.Get("find"))
	if word == "" {
		return nil, fmt.Errorf("%w: find: want a Delay-Id, a key, a target or a Nats-Msg-Id", errAsked)
	}
	f := Found{
		Pending: []inspect.PendingMessage{}, Timers: []store.Row{}, Letters: []Letter{}, Trouble: []string{},
		Target: message.ValidPattern(word),
	}
	line := shell(nil)
	part := func(name string, search func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, questionTime/findParts)
		defer cancel()
		allowed, cancelAllowed := i.WithRefusal(ctx)
		defer cancelAllowed()
		if err := inspect.Cause(allowed, search(allowed)); err != nil {
			f.Trouble = append(f.Trouble, name+": "+text.Printable(err.Error(), 300))
		}
	}
	if wanted, err := inspect.ParseMessageRef(word); err == nil {
		part("the message", func(ctx context.Context) error {
			w, err := i.Where(ctx, wanted, maxRead, func(uint64, uint64) {})
			if err == nil && (w.Found || !wanted.Partial) { // many keys have the form of a partial id
				f.Message, line = &w, shell{"where"}.words(word)
			}
			return err
		})
	}
	part("pending messages", func(ctx context.Context) error {
		l, err := i.Pending(ctx, inspect.PendingQuery{Find: word, Limit: defaultRows, MaxRead: maxRead})
		f.Time, f.Partial = l.Time, l.More
		f.Pending = append(f.Pending, l.Messages...)
		return err
	})
	part("timers", func(ctx context.Context) error {
		l, err := i.Timers().List(ctx, store.Filter{Key: word}, store.Page{Limit: defaultRows})
		f.Partial = f.Partial || l.Next > 0
		f.Timers = append(f.Timers, l.Timers...)
		return err
	})
	part("dead letters", func(ctx context.Context) error {
		letters, err := i.Letters(ctx)
		if err != nil {
			return err
		}
		rows, more, err := listLetters(ctx, letters, deadletter.Filter{}, word, defaultRows)
		f.Letters, f.Partial = append(f.Letters, rows...), f.Partial || more
		return err
	})
	return answer{line.String(), f}, nil
}
