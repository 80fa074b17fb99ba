package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/store"
)

const (
	// maxOne is the maximum number of concurrent requests about one timer. Each request may have its timer's body in
	// memory. So for a large max_payload, the maximum is lower: all bodies have at most bodyRoom bytes together, unless
	// that allows fewer than minOne requests.
	maxOne   = 64
	minOne   = 8
	bodyRoom = 64 << 20
	// maxMany is the maximum number of concurrent requests that list or change many timers, or read all lanes.
	maxMany = 4
	// oneWaiting and manyWaiting are the maximum numbers of requests that wait for a worker.
	oneWaiting  = 2048
	manyWaiting = 64
	// oneTimeout and manyTimeout are the timeouts of a request, from its receipt. They are shorter than the timeouts of
	// our clients.
	oneTimeout, manyTimeout = 3 * time.Second, 4 * time.Second
	// maxReceived is the maximum number of messages that wait for Listener.Serve. Further messages are dropped.
	maxReceived = 1024
	// maxRequest is the maximum size of a request, in bytes, with its subject and headers.
	maxRequest = 8 << 10
)

// Config is the configuration of a Service.
type Config struct {
	Conn          *nats.Conn // connection for requests and answers
	Timers        *store.Timers
	Calls         map[string]Call // the added calls, by the end of the subject: lanes, where.*
	ReplyPrefixes []string        // allowed prefixes of reply subjects, beside _INBOX and _R_; without the final dot
	Instance      string          // shown to operators
	Grace         time.Duration   // for how long Run still answers received requests after its ctx has ended
	Log           *slog.Logger
}

// Call answers the requests on one subject. The result is encoded as JSON; the error is a *store.Refusal if the request
// is invalid. If the subject of the Call ends with a wildcard, rest is the token in place of the wildcard.
type Call = func(ctx context.Context, rest string, body []byte) (any, error)

// Service answers requests about timers. Several instances share the requests. Create a Service with NewService; Run
// does the work.
type Service struct {
	Config
	names     message.Names
	id        string // unique among all services
	started   time.Time
	endpoints []*endpoint
	questions map[string]micro.Verb // the requests of "nats micro", by subject
	requests  *Listener
	one, many *queue // Run closes them after its ctx has ended
	workers   int    // the number of workers of the queue one
}

// endpoint handles the requests on some subjects.
type endpoint struct {
	name     string
	root     string // the beginning of its subjects, with a final dot if a token must follow
	subjects []string
	verb     timer.Verb
	answers  func(ctx context.Context, r request) (any, error)
	isMany   bool // the requests go to the queue many
	isCall   bool // the requests are about all lanes: the subject contains no target

	mu    sync.Mutex // guards stats
	stats micro.EndpointStats
}

// NewService returns a Service. It starts no goroutine.
func NewService(cfg Config) *Service {
	id := rand.Text()
	workers := oneWorkers(cfg.Conn.MaxPayload())
	s := &Service{
		Config: cfg, names: cfg.Timers.Policy.Names, id: id, questions: questionSubjects(id),
		requests: NewListener(cfg.Conn, cfg.ReplyPrefixes, maxReceived, cfg.Log),
		workers:  workers, one: newQueue(oneWaiting, workers*3/4), many: newQueue(manyWaiting, 1),
	}
	for _, verb := range []timer.Verb{
		timer.Get, timer.Cancel, timer.Move, timer.Fire, timer.Pause, timer.Resume, timer.Retime,
	} {
		root := s.names.TimerCall(string(verb))
		s.endpoints = append(s.endpoints, &endpoint{
			name: string(verb), root: root, subjects: []string{root + "*.>"}, verb: verb, answers: s.changeTimer,
		})
	}
	for _, e := range []*endpoint{
		{name: "timers", root: s.names.TimersCall(), answers: s.list},
		{name: "cancel-all", root: s.names.CancelAllCall(), verb: timer.Cancel, answers: s.bulk},
		{name: "shift", root: s.names.ShiftCall(), verb: timer.Move, answers: s.bulk},
	} {
		e.isMany, e.subjects = true, []string{e.root + ".>", e.root}
		s.endpoints = append(s.endpoints, e)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Calls)) {
		root := strings.TrimSuffix(s.names.Call(name), ".*")
		s.endpoints = append(s.endpoints, &endpoint{
			name: strings.TrimSuffix(name, ".*"), root: root, subjects: []string{s.names.Call(name)}, isMany: true, isCall: true,
			answers: func(ctx context.Context, r request) (any, error) {
				return s.Calls[name](ctx, strings.TrimPrefix(strings.TrimPrefix(r.Subject, root), "."), r.Data)
			},
		})
	}
	for _, e := range s.endpoints {
		e.stats = micro.EndpointStats{Name: e.name, Subject: e.subjects[0], QueueGroup: micro.DefaultQueueGroup}
	}
	return s
}

// oneWorkers returns the number of workers for requests about one timer, for a maximum size of messages in bytes.
func oneWorkers(maxPayload int64) int {
	return int(min(maxOne, max(minOne, bodyRoom/max(1, maxPayload))))
}

// Run answers requests until ctx ends. Then it answers the requests that it has received, for at most the grace period.
// If it cannot subscribe, it logs a warning and returns.
func (s *Service) Run(ctx context.Context) {
	s.started = time.Now().UTC() // the start time in answers to "nats micro"
	if err := s.listen(); err != nil {
		s.Log.Warn("cannot subscribe to timer requests; this instance answers none", "err", err)
		return
	}
	one := func(ctx context.Context) { s.work(ctx, s.one, oneTimeout) }
	many := func(ctx context.Context) { s.work(ctx, s.many, manyTimeout) }
	workers := slices.Repeat([]func(context.Context){one}, s.workers)
	workers = append(workers, slices.Repeat([]func(context.Context){many}, maxMany)...)
	s.requests.Serve(ctx, s.Grace, s.receive, workers, func() {
		s.one.close()
		s.many.close()
	})
}

// listen subscribes to the subjects of the endpoints, and to those of "nats micro".
func (s *Service) listen() error {
	for _, e := range s.endpoints {
		if err := s.requests.Subscribe(micro.DefaultQueueGroup, e.subjects...); err != nil {
			return err
		}
	}
	return s.requests.Subscribe("", slices.Collect(maps.Keys(s.questions))...)
}

// receive passes a request to the workers, or answers it immediately. It does not block.
func (s *Service) receive(m *nats.Msg) {
	if s.describe(m) {
		return
	}
	i := slices.IndexFunc(s.endpoints, func(e *endpoint) bool {
		rest, ok := strings.CutPrefix(m.Subject, e.root)
		return ok && (!e.isMany || rest == "" || rest[0] == '.')
	})
	if i < 0 {
		return
	}
	e := s.endpoints[i]
	r, queue := request{Msg: m, endpoint: e, tenant: e.tenant(m.Subject), received: time.Now()}, s.one
	if size := m.Size(); size > maxRequest {
		s.answer(r, nil, store.Refusef(
			store.CodeTooLarge, "the request has %d bytes with its headers: at most %d", size, maxRequest))
		return
	}
	if e.isMany {
		queue = s.many
	}
	if refused, full := queue.put(r); full {
		s.answer(refused, nil, store.Refusef(
			store.CodeBusy, "busy: %d requests wait, which is the maximum; repeat this one in a second", queue.max))
	}
}

// tenant returns the first token of the targets in a subject of the endpoint; empty if the subject contains no target.
func (e *endpoint) tenant(subject string) string {
	rest := strings.TrimPrefix(subject, e.root)
	switch {
	case e.isCall:
		return ""
	case e.isMany:
		rest = strings.TrimPrefix(rest, ".")
	default:
		_, rest, _ = strings.Cut(rest, ".") // after the key
	}
	first, _, _ := strings.Cut(rest, ".")
	return first
}

// work carries out requests until the queue is closed and empty. Timeout is the timeout of each request, from its
// receipt.
func (s *Service) work(base context.Context, from *queue, timeout time.Duration) {
	for {
		r, ok := from.take()
		if !ok {
			return
		}
		answer, err := s.carryOut(base, r, timeout)
		s.answer(r, answer, err)
		from.done(r)
	}
}

func (s *Service) carryOut(base context.Context, r request, timeout time.Duration) (any, error) {
	if waited := time.Since(r.received); waited > timeout/2 {
		return nil, store.Refusef(
			store.CodeBusy, "busy: the request has waited for %s and has not begun; repeat it in a second",
			waited.Round(time.Millisecond))
	}
	ctx, cancel := context.WithDeadline(base, r.received.Add(timeout))
	defer cancel()
	return r.endpoint.answers(ctx, r)
}

// answer sends the answer, or the error in the format of package micro, and counts the request.
func (s *Service) answer(r request, answer any, err error) {
	m := &nats.Msg{Subject: r.Reply}
	if err == nil {
		m.Data, err = encode(answer)
	}
	if err != nil {
		refused := store.Refusef(store.CodeUnavailable, "%v", err)
		errors.As(err, &refused)
		m.Header = nats.Header{
			micro.ErrorHeader: {refused.Sentence}, micro.ErrorCodeHeader: {strconv.Itoa(refused.Code)},
		}
		m.Data, _ = encode(map[string]any{"code": refused.Code, "message": refused.Sentence})
	}
	if e := s.Conn.PublishMsg(m); e != nil && err == nil {
		err = e
	}
	r.endpoint.count(time.Since(r.received), err)
}

func encode(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

func (e *endpoint) count(took time.Duration, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.NumRequests++
	e.stats.ProcessingTime += took
	e.stats.AverageProcessingTime = e.stats.ProcessingTime / time.Duration(e.stats.NumRequests)
	if err != nil {
		e.stats.NumErrors++
		e.stats.LastError = err.Error()
	}
}
