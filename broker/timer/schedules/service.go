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
	// workers is how many requests are worked on at once, and waiting how many may wait for each of them. Those on one
	// subject are worked on in their order.
	workers, waiting = 16, 32
	// received is how many messages may wait to be looked at. Further ones are dropped, and nobody is answered.
	received = 512
	// timeout is how long one may take: a little less than clients wait.
	timeout = 4 * time.Second
	// unansweredEvery is how often the log says that a request cannot be answered.
	unansweredEvery = time.Minute
	// queueGroup is that of all instances.
	queueGroup = "delaybroker-schedules"
)

// Config says how a Service works.
type Config struct {
	Conn          *nats.Conn // to listen and to answer
	Grounds       message.Grounds
	ReplyPrefixes []string // below which it answers, besides _INBOX and _R_; without the final dot
	Store         Store
	Grace         time.Duration // for what is underway when Run is to end
	Log           *slog.Logger
}

// Service answers requests in the server's dialect, as one of several instances. Make one with NewService; Run does the
// work.
type Service struct {
	Config
	requests *service.Listener
	queues   []chan *nats.Msg // one for each worker; closed when nothing is received any more
	seed     maphash.Seed
	notes    ratelog.Limit // of the loop that receives
}

// NewService starts nothing.
func NewService(cfg Config) *Service {
	s := &Service{
		Config: cfg, requests: service.NewListener(cfg.Conn, received), seed: maphash.MakeSeed(),
	}
	for range workers {
		s.queues = append(s.queues, make(chan *nats.Msg, waiting))
	}
	return s
}

// Run answers until ctx ends, and then what it has received, as far as the grace allows. Where it may not listen,
// nobody is answered.
func (s *Service) Run(ctx context.Context) {
	if err := s.requests.Subscribe(queueGroup, s.Grounds.Subjects()...); err != nil {
		s.Log.Error("nobody can ask this instance for schedules (DELAY_SCHEDULES)", "err", err)
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

// receive gives a request to its worker. It does not block.
//
// Who else could have sent it: NATS puts the answer to anybody's question on any subject, with headers of that one's
// choice where it is a message of his own stream. But no answer has a reply subject of its own choice: it has none, or
// one below $JS.ACK. So only what wants an answer where answers go is a request.
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

// work carries a request out, and answers once it is certain what came of it.
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

// answer sends an answer. It fails without a connection: then nobody is answered.
func (s *Service) answer(m *nats.Msg, a ack) {
	if body, err := json.Marshal(a); err == nil {
		_ = s.Conn.Publish(m.Reply, body)
	}
}
