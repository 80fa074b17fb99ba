package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/service"
	"delaybroker/broker/timer/store"
)

const (
	// workers is the number of requests that are carried out concurrently. waiting is the maximum number of requests that
	// wait for each worker. All requests about a schedule go to the same worker, which keeps their order.
	workers, waiting = 16, 32
	// maxReceived is the maximum number of messages that wait for Listener.Serve. Further messages are dropped.
	maxReceived = 512
	// timeout is the timeout of a request; the time in a queue does not count. It is shorter than the usual timeout of
	// clients, 5 s.
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
	queues   []chan *nats.Msg // one for each worker; Run closes them after its ctx has ended
	seed     maphash.Seed
}

// NewService returns a Service. It starts no goroutine.
func NewService(cfg Config) *Service {
	s := &Service{
		Config: cfg, seed: maphash.MakeSeed(),
		requests: service.NewListener(cfg.Conn, cfg.ReplyPrefixes, maxReceived, cfg.Log),
	}
	for range workers {
		s.queues = append(s.queues, make(chan *nats.Msg, waiting))
	}
	return s
}

// Run answers requests until ctx ends. Then it answers the requests that it has received, for at most the grace period.
// If it cannot subscribe, it logs an error and returns.
func (s *Service) Run(ctx context.Context) {
	if err := s.requests.Subscribe(queueGroup, s.Rules.Subjects()...); err != nil {
		s.Log.Error("cannot subscribe to schedule requests; this instance answers none (DELAY_SCHEDULES)", "err", err)
		return
	}
	var workers []func(context.Context)
	for _, queue := range s.queues {
		workers = append(workers, func(ctx context.Context) {
			for m := range queue {
				s.work(ctx, m)
			}
		})
	}
	s.requests.Serve(ctx, s.Grace, s.receive, workers, func() {
		for _, queue := range s.queues {
			close(queue)
		}
	})
}

// receive passes a request to its worker. It does not block.
func (s *Service) receive(m *nats.Msg) {
	about := cmp.Or(m.Header.Get(jetstream.SchedulerHeader), m.Subject)
	queue := s.queues[maphash.String(s.seed, about)%uint64(len(s.queues))]
	select {
	case queue <- m:
	default:
		s.answer(m, s.Store.refusalAck(&tooMany))
	}
}

// work carries out a request, and answers it if the result is certain.
func (s *Service) work(base context.Context, m *nats.Msg) {
	ctx, cancel := context.WithTimeout(base, timeout)
	defer cancel()
	now, err := s.Store.Now(ctx)
	for ; err != nil && ctx.Err() == nil; now, err = s.Store.Now(ctx) {
		store.WaitToRetry(ctx)
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

// Refusal is the error in an answer to a client, in JetStream's format: the message was not stored.
type Refusal struct {
	Code        int    `json:"code"` // an HTTP status
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s (%d)", r.Description, r.ErrCode) }

// The refusals of nats-server, with its codes and texts (server/errors.json).
var (
	badPattern   = Refusal{400, 10189, "message schedules pattern is invalid"}
	badTarget    = Refusal{400, 10190, "message schedules target is invalid"}
	badTTL       = Refusal{400, 10191, "message schedules invalid per-message TTL"}
	badRollup    = Refusal{400, 10192, "message schedules invalid rollup"}
	badSource    = Refusal{400, 10203, "message schedules source is invalid"}
	badScheduler = Refusal{400, 10212, "message schedules invalid scheduler"}
	badZone      = Refusal{400, 10223, "message schedules time zone is invalid"}
	badOwnTTL    = Refusal{400, 10165, "invalid per-message TTL"}
	badExpected  = Refusal{400, 10193, "missing sequence for expected last sequence per subject"}
	noTTL        = Refusal{400, 10166, "per-message TTL is disabled"}
	otherStream  = Refusal{400, 10060, "expected stream does not match"}
	noCounters   = Refusal{400, 10168, "message counters is disabled"}
	badCounter   = Refusal{400, 10171, "message counter increment is invalid"}
	noBatches    = Refusal{400, 10174, "atomic publish is disabled"}
	sourced      = Refusal{400, 10227, "message stream source header is not allowed"}
	tooMany      = Refusal{429, jsapi.CodeTooMany, "too many requests"}
	tooLarge     = Refusal{400, jsapi.CodeTooLarge, "message size exceeds maximum allowed"}
)

// withReason returns the refusal with a reason added to its text, for a rule that the server does not have.
func (r Refusal) withReason(format string, args ...any) *Refusal {
	r.Description += ": " + fmt.Sprintf(format, args...)
	return &r
}
