package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/service"
)

const (
	// workers is the number of requests that are carried out concurrently, and share the maximum number of these that
	// belong to one tenant.
	workers, share = 16, 12
	// maxWaiting is the maximum number of requests that wait for a worker.
	maxWaiting = 512
	// maxReceived is the maximum number of messages that wait for Listener.Serve. Further messages are dropped.
	maxReceived = 512
	// timeout is the timeout of a request, from its receipt. It is shorter than the usual timeout of clients, 5 s.
	timeout = 4 * time.Second
	// queueGroup is the queue group of all instances.
	queueGroup = "delaybroker-schedules"
)

// Config is the configuration of a Service.
type Config struct {
	Conn          *nats.Conn // connection for requests and answers
	Rules         message.ScheduleRules
	ReplyPrefixes []string // prefixes of reply subjects to which the service answers, in addition to _INBOX and _R_
	Store         Store
	Grace         time.Duration // for how long Run still answers received requests after its ctx has ended
	Log           *slog.Logger
}

// Service answers requests that have the server's headers for schedules. Several instances share the requests. Create a
// Service with NewService; Run does the work.
type Service struct {
	Config
	requests *service.Listener
	queue    *service.Queue[request] // Run closes it after its ctx has ended
}

// request is a message to be answered.
type request struct {
	*nats.Msg
	received time.Time
}

// NewService returns a Service. It starts no goroutine.
func NewService(cfg Config) *Service {
	return &Service{
		Config:   cfg,
		requests: service.NewListener(cfg.Conn, cfg.ReplyPrefixes, maxReceived, cfg.Log),
		queue:    service.NewQueue[request](maxWaiting, share),
	}
}

// Run answers requests until ctx ends. Then it answers the requests that it has received, for at most the grace period.
// If it cannot subscribe, it logs an error and returns.
func (s *Service) Run(ctx context.Context) {
	if err := s.requests.Subscribe(queueGroup, s.Rules.Subjects()...); err != nil {
		s.Log.Error("cannot subscribe to schedule requests; this instance answers none (DELAY_SCHEDULES)", "err", err)
		return
	}
	work := func(ctx context.Context) { s.queue.Work(func(r request) { s.carryOut(ctx, r) }) }
	s.requests.Serve(ctx, s.Grace, s.receive, slices.Repeat([]func(context.Context){work}, workers), s.queue.Close)
}

// receive passes a request to the workers. It does not block. The client chooses the header of the schedule, but not
// the subject. So the tenant comes from the subject.
func (s *Service) receive(m *nats.Msg) {
	about := cmp.Or(m.Header.Get(jetstream.SchedulerHeader), m.Subject)
	if refused, full := s.queue.Put(s.Rules.Tenant(m.Subject), about, request{m, time.Now()}); full {
		s.answer(refused.Msg, s.Store.refusalAck(&tooMany))
	}
}

// carryOut carries out a request, and answers it if the result is certain. A request that has waited for half of its
// timeout is refused.
func (s *Service) carryOut(base context.Context, r request) {
	m := r.Msg
	if time.Since(r.received) > timeout/2 {
		s.answer(m, s.Store.refusalAck(&tooMany))
		return
	}
	ctx, cancel := context.WithDeadline(base, r.received.Add(timeout))
	defer cancel()
	now, err := s.Store.Now(ctx)
	for ; err != nil && ctx.Err() == nil; now, err = s.Store.Now(ctx) {
		change.WaitToRetry(ctx)
	}
	if err != nil {
		return // nothing was stored; the client gets no answer
	}
	in := message.Incoming{
		Subject: m.Subject, Header: message.Header(m.Header), Data: m.Data,
		Undecodable: len(m.Header) == 0 && m.Size() > len(m.Subject)+len(m.Reply)+len(m.Data),
	}
	change, refusal := Judge(s.Rules, s.Store.stream(), in, now)
	if refusal == nil {
		refusal = s.Store.checkStorable(ctx, change)
	}
	if refusal != nil {
		s.answer(m, s.Store.refusalAck(refusal))
		return
	}
	if answer, err := s.Store.carryOut(ctx, in, change, now); err == nil {
		s.answer(m, answer)
	}
}

// answer sends an answer. If that fails for lack of a connection, the client gets no answer.
func (s *Service) answer(m *nats.Msg, a ack) {
	if body, err := json.Marshal(a); err == nil {
		_ = s.Conn.Publish(m.Reply, body)
	}
}

// refusal is the error in an answer to a client, in JetStream's format: the message was not stored.
type refusal struct {
	Code        int    `json:"code"` // an HTTP status
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Description, r.ErrCode) }

// The refusals of nats-server, with its codes and texts (server/errors.json).
var (
	badPattern   = refusal{400, 10189, "message schedules pattern is invalid"}
	badTarget    = refusal{400, 10190, "message schedules target is invalid"}
	badTTL       = refusal{400, 10191, "message schedules invalid per-message TTL"}
	badRollup    = refusal{400, 10192, "message schedules invalid rollup"}
	badSource    = refusal{400, 10203, "message schedules source is invalid"}
	badScheduler = refusal{400, 10212, "message schedules invalid scheduler"}
	badZone      = refusal{400, 10223, "message schedules time zone is invalid"}
	badOwnTTL    = refusal{400, 10165, "invalid per-message TTL"}
	badExpected  = refusal{400, 10193, "missing sequence for expected last sequence per subject"}
	noTTL        = refusal{400, 10166, "per-message TTL is disabled"}
	otherStream  = refusal{400, 10060, "expected stream does not match"}
	noCounters   = refusal{400, 10168, "message counters is disabled"}
	badCounter   = refusal{400, 10171, "message counter increment is invalid"}
	noBatches    = refusal{400, 10174, "atomic publish is disabled"}
	sourced      = refusal{400, 10227, "message stream source header is not allowed"}
	tooMany      = refusal{429, jsapi.CodeTooMany, "too many requests"}
	tooLarge     = refusal{400, jsapi.CodeTooLarge, "message size exceeds maximum allowed"}
)

// withReason returns the refusal with a reason added to its text, for a rule that the server does not have.
func (r refusal) withReason(format string, args ...any) *refusal {
	r.Description += ": " + fmt.Sprintf(format, args...)
	return &r
}
