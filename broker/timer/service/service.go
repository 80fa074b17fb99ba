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
	"delaybroker/broker/timer/change"
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
	Names         message.Names
	Endpoints     []Endpoint
	Calls         map[string]Call // endpoints about all lanes, by the end of the subject: lanes, where.*
	ReplyPrefixes []string        // allowed prefixes of reply subjects, beside _INBOX and _R_; without the final dot
	Instance      string          // shown to operators
	Grace         time.Duration   // for how long Run still answers received requests after its ctx has ended
	Log           *slog.Logger
}

// An Endpoint answers the requests on some subjects.
type Endpoint struct {
	Name     string
	Root     string // the beginning of its subjects, with a final dot if a token must follow
	Subjects []string
	Many     bool // the requests list or change many objects, or read all lanes: they go to a queue of their own
	// Tenant returns the first token of the targets in the rest of a subject after Root; empty if there is none.
	Tenant func(rest string) string
	// Answer answers a request. Rest is the rest of its subject after Root. The result is encoded as JSON. An error with
	// the method StatusCode is a refusal, such as of an invalid request. The method ProblemCode returns the code of the
	// dead letter that the refused message would have become, or nothing.
	Answer func(ctx context.Context, rest string, m *nats.Msg) (any, error)
}

// Call answers the requests on one subject, as Endpoint.Answer does. If the subject of the Call ends with a wildcard,
// rest is the token in place of the wildcard.
type Call = func(ctx context.Context, rest string, body []byte) (any, error)

// Service answers requests about timers. Several instances share the requests. Create a Service with NewService; Run
// does the work.
type Service struct {
	Config
	id        string // unique among all services
	started   time.Time
	endpoints []*endpoint
	questions map[string]micro.Verb // the requests of "nats micro", by subject
	requests  *Listener
	one, many *Queue[request] // Run closes them after its ctx has ended
	workers   int             // the number of workers of the queue one
}

// request is a message to be answered.
type request struct {
	*nats.Msg
	endpoint *endpoint
	received time.Time
}

// endpoint is an Endpoint with the counts of its requests.
type endpoint struct {
	Endpoint

	mu    sync.Mutex // guards stats
	stats micro.EndpointStats
}

// NewService returns a Service. It starts no goroutine.
func NewService(cfg Config) *Service {
	id := rand.Text()
	workers := oneWorkers(cfg.Conn.MaxPayload())
	s := &Service{
		Config: cfg, id: id, questions: questionSubjects(id),
		requests: NewListener(cfg.Conn, cfg.ReplyPrefixes, maxReceived, cfg.Log),
		workers:  workers, one: NewQueue[request](oneWaiting, workers*3/4), many: NewQueue[request](manyWaiting, 1),
	}
	for _, e := range s.Endpoints {
		s.endpoints = append(s.endpoints, &endpoint{Endpoint: e})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Calls)) {
		root := strings.TrimSuffix(s.Names.Call(name), ".*")
		s.endpoints = append(s.endpoints, &endpoint{Endpoint: Endpoint{
			Name: strings.TrimSuffix(name, ".*"), Root: root, Subjects: []string{s.Names.Call(name)}, Many: true,
			Tenant: func(string) string { return "" },
			Answer: func(ctx context.Context, rest string, m *nats.Msg) (any, error) {
				return s.Calls[name](ctx, strings.TrimPrefix(rest, "."), m.Data)
			},
		}})
	}
	for _, e := range s.endpoints {
		e.stats = micro.EndpointStats{Name: e.Name, Subject: e.Subjects[0], QueueGroup: micro.DefaultQueueGroup}
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
		s.one.Close()
		s.many.Close()
	})
}

// listen subscribes to the subjects of the endpoints, and to those of "nats micro".
func (s *Service) listen() error {
	for _, e := range s.endpoints {
		if err := s.requests.Subscribe(micro.DefaultQueueGroup, e.Subjects...); err != nil {
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
		rest, ok := strings.CutPrefix(m.Subject, e.Root)
		return ok && (!e.Many || rest == "" || rest[0] == '.')
	})
	if i < 0 {
		return
	}
	e := s.endpoints[i]
	r, queue := request{Msg: m, endpoint: e, received: time.Now()}, s.one
	if size := m.Size(); size > maxRequest {
		s.answer(r, nil, change.Refusef(
			change.CodeTooLarge, "the request has %d bytes with its headers: at most %d", size, maxRequest))
		return
	}
	if e.Many {
		queue = s.many
	}
	if refused, full := queue.Put(e.Tenant(m.Subject[len(e.Root):]), "", r); full {
		s.answer(refused, nil, change.Refusef(
			change.CodeBusy, "busy: %d requests wait, which is the maximum; repeat this one in a second", queue.max))
	}
}

// work carries out requests until the queue is closed and empty. Timeout is the timeout of each request, from its
// receipt.
func (s *Service) work(base context.Context, from *Queue[request], timeout time.Duration) {
	from.Work(func(r request) {
		answer, err := s.carryOut(base, r, timeout)
		s.answer(r, answer, err)
	})
}

func (s *Service) carryOut(base context.Context, r request, timeout time.Duration) (any, error) {
	if waited := time.Since(r.received); waited > timeout/2 {
		return nil, change.Refusef(
			change.CodeBusy, "busy: the request has waited for %s and has not begun; repeat it in a second",
			waited.Round(time.Millisecond))
	}
	ctx, cancel := context.WithDeadline(base, r.received.Add(timeout))
	defer cancel()
	return r.endpoint.Answer(ctx, r.Subject[len(r.endpoint.Root):], r.Msg)
}

// answer sends the answer, or the error in the format of package micro, and counts the request.
func (s *Service) answer(r request, answer any, err error) {
	m := &nats.Msg{Subject: r.Reply}
	if err == nil {
		m.Data, err = encode(answer)
	}
	if err != nil {
		code := StatusOf(err)
		m.Header = nats.Header{micro.ErrorHeader: {err.Error()}, micro.ErrorCodeHeader: {strconv.Itoa(code)}}
		body := map[string]any{"code": code, "message": err.Error()}
		if p, ok := errors.AsType[interface {
			error
			ProblemCode() string
		}](err); ok && p.ProblemCode() != "" {
			body["problem"] = p.ProblemCode()
		}
		m.Data, _ = encode(body)
	}
	if e := s.Conn.PublishMsg(m); e != nil && err == nil {
		err = e
	}
	r.endpoint.count(time.Since(r.received), err)
}

// StatusOf returns the code of the answer to a request with this error.
func StatusOf(err error) int {
	status, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err)
	if !ok {
		return change.CodeUnavailable
	}
	return status.StatusCode()
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
