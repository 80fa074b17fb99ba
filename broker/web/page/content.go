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
	"delaybroker/broker/text"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
)

const (
	// maxHeaders is the maximum number of headers in a response, and the maximum number of values of one header.
	maxHeaders = 100
	// maxValue is the maximum length of a header's value in a response, in characters. Longer values are cut.
	maxValue = 1000
)

// content has the stored headers and the body of one message.
type content struct {
	Stream   string              `json:"stream"`
	Sequence uint64              `json:"sequence"`
	Headers  map[string][]string `json:"headers"`
	Body     text.Body           `json:"body"`
	Editable message.Header      `json:"editable,omitempty"` // the headers that an edit may change; only of a dead letter
}

// content responds with the headers and the body of one message. It logs the name of the viewer's token.
func (p *Page) content(w http.ResponseWriter, r *http.Request) {
	if !p.cfg.Access.Bodies {
		writeError(w, http.StatusForbidden, "headers and bodies are hidden: set DELAY_HTTP_BODIES=on to show them")
		return
	}
	token, _ := p.cfg.Access.authenticate(r)
	p.ask(func(ctx context.Context, i *inspect.Inspector, v url.Values) (any, error) {
		stream, sequence, err := locate(ctx, i, v)
		if err != nil {
			return nil, err
		}
		in, err := i.Message(ctx, stream, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, fmt.Errorf("%w: the message is no longer in %s: search for the message again", errRequest, stream)
		}
		if err != nil {
			return nil, err
		}
		p.cfg.Log.Info("the page showed a viewer the headers and the body of a message", "who", cmp.Or(token.Name, "anyone"),
			"from", clientAddress(r), "stream", stream, "sequence", sequence, "id", message.ClaimOf(in.Header).ID)
		c := content{
			Stream: stream, Sequence: sequence, Headers: headersOf(in.Header), Body: text.RenderBody(in.Data, text.MaxBody),
		}
		if v.Get("number") != "" {
			c.Editable, err = editableOf(ctx, i, sequence)
		}
		return c, err
	})(w, r)
}

// editableOf returns the headers of a dead letter that an edit may change. It does not cut long values, because an edit
// resends them.
func editableOf(ctx context.Context, i *inspect.Inspector, number uint64) (message.Header, error) {
	letters, err := i.Letters(ctx)
	if err != nil {
		return nil, err
	}
	one := deadletter.Query{Filter: deadletter.Filter{Sequences: []uint64{number}}, HeadersOnly: true}
	for l, err := range letters.List(ctx, one) {
		return l.EditableHeader(), err
	}
	return nil, nil
}

// locate finds the stream and the sequence of a message: of a dead letter by its number, of a timer by its key and
// target, and of any other message by its Delay-Id, or by its stream and sequence.
func locate(ctx context.Context, i *inspect.Inspector, v url.Values) (stream string, sequence uint64, err error) {
	names := i.Policy().Names
	switch {
	case v.Get("number") != "":
		if sequence, err = strconv.ParseUint(v.Get("number"), 10, 63); err != nil || sequence == 0 {
			err = fmt.Errorf("%w: number %q: want the number of a dead letter", errRequest, v.Get("number"))
		}
		return names.DeadStream(), sequence, err
	case v.Get("key") != "":
		get := change.Change{Call: timer.Call{Verb: timer.Get}, Key: v.Get("key"), Target: v.Get("target")}
		a, err := i.Timers().Do(ctx, get)
		if err == nil && a.Generation == 0 {
			err = fmt.Errorf("%w: there is no timer %s with the target %s", errRequest, get.Key, get.Target)
		}
		return names.TimersStream(), a.Generation, err
	}
	ref, err := inspect.ParseMessageRef(v.Get("id"))
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", errRequest, err)
	}
	w, err := i.Where(ctx, ref, maxRead, func(uint64, uint64) {})
	if err == nil && w.Sequence == 0 {
		err = fmt.Errorf("%w: %s", errRequest, w.Answer)
	}
	return w.Stream, w.Sequence, err
}

// headersOf returns the headers of a message, without the broker's seal. Each value is one printable line.
func headersOf(h message.Header) map[string][]string {
	headers := make(map[string][]string)
	for name, values := range h {
		if name == message.HeaderSeal || len(headers) == maxHeaders {
			continue
		}
		printable := []string{}
		for _, value := range values[:min(len(values), maxHeaders)] {
			printable = append(printable, text.Printable(value, maxValue))
		}
		headers[text.Printable(name, 200)] = printable
	}
	return headers
}
