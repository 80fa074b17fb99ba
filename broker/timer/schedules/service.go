package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/ratelog"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/service"
	"delaybroker/broker/timer/store"
)

const (
	// workers is the number of requests that are worked on at once, and waiting the number that may wait for each worker.
	// Requests on one subject are worked on in their order.
	workers, waiting = 16, 32
	// received is the number of messages that may wait for the service. Further ones are dropped, and not answered.
	received = 512
	// timeout is the timeout for one request: a little less than clients wait.
	timeout = 4 * time.Second
	// unansweredEvery is the interval of the warnings about requests that cannot be answered.
	unansweredEvery = time.Minute
	// queueGroup is the queue group of all instances.
	queueGroup = "delaybroker-schedules"
)

// Config is the configuration of a Service.
type Config struct {
	Conn          *nats.Conn // connection for requests and answers
	Grounds       message.Grounds
	ReplyPrefixes []string // below which it answers, in addition to _INBOX and _R_; without the final dot
	Store         Store
	Grace         time.Duration // for requests underway when ctx of Run ends
	Log           *slog.Logger
}

// Service answers requests in the server's dialect, as one of several instances. NewService makes one; Run does the
// work.
type Service struct {
	Config
	requests *service.Listener
	queues   []chan *nats.Msg // one for each worker; closed when no more requests come
	seed     maphash.Seed
	notes    ratelog.Limit // of the receiving loop
}

// NewService returns a Service, and starts nothing.
func NewService(cfg Config) *Service {
	s := &Service{
		Config: cfg, requests: service.NewListener(cfg.Conn, received), seed: maphash.MakeSeed(),
	}
	for range workers {
		s.queues = append(s.queues, make(chan *nats.Msg, waiting))
	}
	return s
}

// Run answers until ctx ends, and then answers the received requests, as far as the grace allows. If it has no right to
// subscribe, it answers nothing.
func (s *Service) Run(ctx context.Context) {
	if err := s.requests.Subscribe(queueGroup, s.Grounds.Subjects()...); err != nil {
		s.Log.Error("cannot subscribe to schedule requests; this instance answers none (DELAY_SCHEDULES)", "err", err)
		return
	}
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var working sync.WaitGroup
	for _, queue := range s.queues {
		working.Go(func() {
			for m := range queue {
				s.work(base, m)
			}
		})
	}
	s.requests.Each(ctx, s.receive)
	for _, queue := range s.queues {
		close(queue)
	}
	late := time.AfterFunc(s.Grace, abandon)
	defer late.Stop()
	working.Wait()
}

// receive passes a request to its worker. It does not block.
//
// Other senders: NATS sends the answer to any client's request to any subject, and the client chooses the headers if
// the answer is a message of its own stream. But no such answer has a reply subject of the client's choice: it has
// none, or one below $JS.ACK. So a message is a request only if its reply subject is one for answers.
func (s *Service) receive(m *nats.Msg) {
	if !service.Answerable(m.Reply, s.ReplyPrefixes) {
		if more, ok := s.notes.Allow(unansweredEvery); ok {
			s.Log.Warn("a request for a schedule is not answered, and not carried out: its reply subject is none of those that "+
				"answers go to (DELAY_REPLY_PREFIXES)", "subject", m.Subject, "reply", m.Reply, "more", more)
		}
		return
	}
	about := cmp.Or(m.Header.Get(hScheduler), m.Subject)
	queue := s.queues[maphash.String(s.seed, about)%uint64(len(s.queues))]
	select {
	case queue <- m:
	default:
		s.answer(m, s.Store.refused(&tooMany))
	}
}

// work carries a request out, and answers once the result is certain.
func (s *Service) work(base context.Context, m *nats.Msg) {
	ctx, cancel := context.WithTimeout(base, timeout)
	defer cancel()
	now, err := s.Store.Now(ctx)
	for ; err != nil && ctx.Err() == nil; now, err = s.Store.Now(ctx) {
		store.WaitToRetry(ctx)
	}
	if err != nil {
		return // nothing was stored: the client asks again
	}
	r := Request{Subject: m.Subject, Header: message.Header(m.Header), Body: m.Data}
	change, refused := s.judge(r, m, now)
	if refused == nil {
		refused = s.Store.unable(ctx, change)
	}
	if refused != nil {
		s.answer(m, s.Store.refused(refused))
		return
	}
	if answer, err := s.Store.carryOut(ctx, r, change, now); err == nil {
		s.answer(m, answer)
	}
}

func (s *Service) judge(r Request, m *nats.Msg, now time.Time) (Change, *Refusal) {
	if len(m.Header) == 0 && m.Size() > len(m.Subject)+len(m.Reply)+len(m.Data) {
		return Change{}, badPattern.because("the headers cannot be decoded: each line is \"Name: value\" ended by CRLF")
	}
	w, refused := Judge(s.Grounds, s.Store.stream(), r, now)
	if refused != nil {
		return w, refused
	}
	if problem := entry.CheckSchedule(s.Store.Policy, w.Schedule.Subject); problem != nil {
		return w, &Refusal{400, jsapi.CodeNotStored, problem.Sentence}
	}
	return w, nil
}

// answer sends an answer. Without a connection it fails, and the client gets no answer.
func (s *Service) answer(m *nats.Msg, a ack) {
	if body, err := json.Marshal(a); err == nil {
		_ = s.Conn.Publish(m.Reply, body)
	}
}
