package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/deadletter"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
	"delaybroker/broker/payload"
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

const (
	// maxHeaders is the maximum number of headers shown of a message, and of values shown of one header.
	maxHeaders = 100
	// maxValue is the maximum length of a header's value that is shown, in characters.
	maxValue = 1000
)

// Content holds the stored headers and body of one message.
type Content struct {
	Stream   string              `json:"stream"`
	Sequence uint64              `json:"sequence"`
	Headers  map[string][]string `json:"headers"`
	Body     payload.View        `json:"body"`
	Editable message.Header      `json:"editable,omitempty"` // of a dead letter: the headers that an edit may change
}

// content shows the headers and the body of one message to a viewer with the right to see bodies. It logs the viewer's
// name.
func (p *Page) content(w http.ResponseWriter, r *http.Request) {
	if !p.cfg.Access.Bodies {
		writeError(w, http.StatusForbidden, "headers and bodies are hidden: set DELAY_HTTP_BODIES=on to show them")
		return
	}
	who, _ := p.cfg.Access.who(r)
	p.ask(func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
		stream, sequence, err := placeOf(ctx, i, v)
		if err != nil {
			return nil, err
		}
		in, err := i.Message(ctx, stream, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, fmt.Errorf("%w: the message is no longer in %s: search for it again", errAsked, stream)
		}
		if err != nil {
			return nil, err
		}
		p.cfg.Log.Info("the page showed a viewer the headers and the body of a message", "who", cmp.Or(who.Name, "anyone"),
			"from", from(r), "stream", stream, "sequence", sequence, "id", http.Header(in.Header).Get(message.HeaderID))
		c := Content{
			Stream: stream, Sequence: sequence, Headers: headersOf(in.Header), Body: payload.Render(in.Data, payload.MaxShown),
		}
		if v.Get("number") != "" {
			c.Editable, err = editableOf(ctx, i, sequence)
		}
		return c, err
	})(w, r)
}

// editableOf returns the headers of a dead letter that may be edited. It does not shorten them, since the edit resends
// them.
func editableOf(ctx context.Context, i *inspect.Inspector, number uint64) (message.Header, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	one := deadletter.Query{Filter: deadletter.Filter{Sequences: []uint64{number}}, HeadersOnly: true}
	for l, err := range letters.List(ctx, one) {
		return l.Editable(), err
	}
	return nil, nil
}

// placeOf finds the position of a message: a dead letter by its number, a timer by its key and target, any other
// message by its Delay-Id. It accepts only the broker's own streams.
func placeOf(ctx context.Context, i *inspect.Inspector, v url.Values) (stream string, sequence uint64, err error) {
	names := i.Policy().Names
	switch {
	case v.Get("number") != "":
		sequence, err = strconv.ParseUint(v.Get("number"), 10, 63)
		if err != nil || sequence == 0 {
			return "", 0, fmt.Errorf("%w: number %q: want the number of a dead letter", errAsked, v.Get("number"))
		}
		return names.DeadStream(), sequence, nil
	case v.Get("key") != "":
		get := store.Change{Request: timer.Request{Verb: timer.Get}, Key: v.Get("key"), Target: v.Get("target")}
		a, err := doTimer(ctx, i, get)
		if err == nil && a.Generation == 0 {
			err = fmt.Errorf("%w: there is no such timer", errAsked)
		}
		return names.TimersStream(), a.Generation, err
	}
	wanted, err := inspect.ParseMessageRef(v.Get("id"))
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", errAsked, err)
	}
	found, err := i.Where(ctx, wanted, maxRead, func(uint64, uint64) {})
	if err == nil && found.Sequence == 0 {
		err = fmt.Errorf("%w: %s", errAsked, found.Answer)
	}
	return found.Stream, found.Sequence, err
}

// headersOf returns the headers of a message without its seal, each value on one line.
func headersOf(h message.Header) map[string][]string {
	all := make(map[string][]string)
	for name, values := range h {
		if name == message.HeaderSeal || len(all) == maxHeaders {
			continue
		}
		shown := []string{}
		for _, value := range values[:min(len(values), maxHeaders)] {
			shown = append(shown, text.Printable(value, maxValue))
		}
		all[text.Printable(name, 200)] = shown
	}
	return all
}
