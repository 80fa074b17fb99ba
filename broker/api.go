package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels/lane"
)

// This file is what the engine asks of the JetStream API while it works, on the control link. Each question goes to the
// stream's leader: a direct get may be answered by a replica that lags.

// errNoMessage is returned when a sequence holds nothing.
var errNoMessage = errors.New("no such message")

// codeNoMessage is nats-server's JSNoMessageFoundErr.
const codeNoMessage = 10037

// errHistory is returned when a stream is not the one whose sequences are known. The reader finds out and begins anew.
var errHistory = errors.New("the stream has another history")

// sample asks a stream's leader for its time and state.
func (e *engine) sample(ctx context.Context, stream string) (lane.Sample, error) {
	s, err := e.js.Stream(ctx, stream)
	e.noted(err)
	if err != nil {
		return lane.Sample{}, err
	}
	return lane.SampleOf(s.CachedInfo(), time.Now()), nil
}

// noted takes note of whether JetStream is there.
func (e *engine) noted(err error) {
	var api *jetstream.APIError
	switch {
	case err == nil && e.away.CompareAndSwap(true, false):
		select {
		case e.back <- struct{}{}:
		default:
		}
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.As(err, &api) && api.Code == 503:
		e.away.Store(true)
	}
}

// stored reads the subject and header at a sequence.
func (e *engine) stored(stream string, seq uint64) (subject string, header nats.Header, err error) {
	var answer struct {
		Message struct {
			Subject string `json:"subject"`
			Header  []byte `json:"hdrs"`
		} `json:"message"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	if err := e.ask(ctx, "STREAM.MSG.GET."+stream, map[string]uint64{"seq": seq}, &answer); err != nil {
		return "", nil, err
	}
	if len(answer.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return "", nil, errNoMessage // not one of ours
		}
	}
	return answer.Message.Subject, header, nil
}

// storedAt is the timestamp of the message at a sequence.
func (e *engine) storedAt(ctx context.Context, stream string, seq uint64) (time.Time, error) {
	var answer struct {
		Message struct {
			Time time.Time `json:"time"`
		} `json:"message"`
	}
	err := e.ask(ctx, "STREAM.MSG.GET."+stream, map[string]uint64{"seq": seq}, &answer)
	return answer.Message.Time, err
}

// remove deletes one message. That it is gone already is fine.
func (e *engine) remove(ctx context.Context, stream string, seq uint64) error {
	err := e.ask(ctx, "STREAM.MSG.DELETE."+stream, map[string]any{"seq": seq, "no_erase": true}, nil)
	if errors.Is(err, errNoMessage) {
		return nil
	}
	return err
}

// purge commits a lane by removing what has arrived.
type purge struct {
	*engine
	stream string
}

// Commit removes everything up to seq.
func (p purge) Commit(ctx context.Context, seq uint64) error {
	if seq == 0 {
		return nil // before 2.12.12, nats-server takes {"seq":1} for everything
	}
	return p.ask(ctx, "STREAM.PURGE."+p.stream, map[string]uint64{"seq": seq + 1}, nil)
}

// ask makes one request and reads its answer.
func (e *engine) ask(ctx context.Context, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode %s: %w", subject, err)
	}
	m, err := e.links.Control.RequestWithContext(ctx, e.cfg.APIPrefix+"."+subject, body)
	if err != nil {
		return err
	}
	var refusal struct {
		Error *struct {
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	switch r := refusal.Error; {
	case r == nil:
	case r.ErrCode == codeNoMessage:
		return errNoMessage
	default:
		return fmt.Errorf("%s (%d)", r.Description, r.ErrCode)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(m.Data, answer)
}
