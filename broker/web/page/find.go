package page

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
)

// searchResult has the results of a search for a text, which may be a Delay-Id, a key, a target or a Nats-Msg-Id.
type searchResult struct {
	Parts   map[string]looked `json:"parts"`   // by operation; without the parts that found nothing or failed
	Target  bool              `json:"target"`  // the text has the form of a target, or of a pattern
	Partial bool              `json:"partial"` // there may be more rows
	Trouble []string          `json:"trouble"` // the parts of the search that failed, each with the reason
}

// partTimeout is the timeout of each of the four parts of a search.
const partTimeout = questionTimeout / 4

// find searches the timers, the dead letters and the lanes, the fastest first; or one of them, by the parameter part.
// If one part fails, find returns the results of the others.
func (p *Page) find(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
	query := strings.TrimSpace(v.Get("find"))
	if query == "" {
		return nil, fmt.Errorf("%w: find: want a Delay-Id, a key, a target or a Nats-Msg-Id", errRequest)
	}
	f := searchResult{Parts: make(map[string]looked), Trouble: []string{}, Target: message.ValidPattern(query)}
	ref, notID := inspect.ParseMessageRef(query)
	for _, part := range []struct{ operation, field string }{
		{"timers ls", "key"}, {"where", "id"}, {"dead ls", "find"}, {"pending ls", "find"},
	} {
		wanted := v.Get("part")
		// A key such as order-123 has the form of a part of a Delay-Id, but names no stream of the broker.
		noMessage := part.field == "id" && (notID != nil || !i.Policy().Names.OwnsStream(ref.ID.Stream))
		if noMessage || wanted != "" && wanted != part.operation {
			continue
		}
		o, _ := operation.Find(part.operation)
		answer, err := p.findPart(ctx, i, o, url.Values{part.field: {query}})
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			f.Partial = true
		case err != nil:
			f.Trouble = append(f.Trouble, o.Name+": "+text.Printable(err.Error(), 300))
		// A key may have the form of a partial Delay-Id, so a partial id without a message is not a result.
		case len(answer.Rows) > 0 && (part.field != "id" || answer.Exit == nil || !ref.Partial):
			f.Parts[o.Name], f.Partial = answer, f.Partial || len(answer.Next) > 0
		}
	}
	return f, nil
}

func (p *Page) findPart(
	ctx context.Context, i *inspect.Inspector, o operation.Operation, v url.Values,
) (looked, error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	allowed, cancelAllowed := i.WithRefusal(ctx)
	defer cancelAllowed()
	answer, err := p.lookAt(allowed, i, o, v)
	return answer, inspect.Cause(allowed, err)
}
