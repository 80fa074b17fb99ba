package broker

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/acks"
	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/operation"
	"delaybroker/broker/streams"
	"delaybroker/broker/streams/provision"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/role"
	"delaybroker/broker/timer/schedules"
	"delaybroker/broker/timer/service"
	"delaybroker/broker/timer/store"
)

// answerRequests starts the service that answers requests about timers and the requests that the program defines
// (Config.Calls), and the service for schedules if Config.Schedules is set. Without a lane of timers and without Calls,
// it starts no service. The services accept requests until ctx ends. The returned function waits until the requests in
// progress are answered, for at most config.AnswerTimeout after the end of ctx.
func (b *Broker) answerRequests(ctx context.Context, lanes []streams.Spec, s *role.Stream) (wait func()) {
	cfg := b.cfg
	if _, ok := streams.SpecOfKind(lanes, streams.Timers); !ok && len(cfg.Calls) == 0 {
		return func() {}
	}
	timers := &store.Timers{
		Timers: change.Timers{Policy: s.Policy, API: s.API, Publish: s.Publish}, Scan: s.Scan,
	}
	requests := service.NewService(service.Config{
		Conn: b.links.Control, Names: b.names, Endpoints: operation.Endpoints(timers, cfg.Schedules),
		Calls:         cfg.Calls,
		ReplyPrefixes: cfg.ReplyPrefixes, Instance: b.id,
		Grace: config.AnswerTimeout(cfg.ShutdownGrace), Log: b.log,
	})
	var answering sync.WaitGroup
	answering.Go(func() { requests.Run(ctx) })
	if len(cfg.Schedules) > 0 {
		scheduler := schedules.NewService(schedules.Config{
			Conn: b.links.Control, Rules: cfg.Schedules, ReplyPrefixes: cfg.ReplyPrefixes,
			Store: schedules.Store{Timers: &timers.Timers}, Grace: config.AnswerTimeout(cfg.ShutdownGrace), Log: b.log,
		})
		answering.Go(func() { scheduler.Run(ctx) })
	}
	return answering.Wait
}

// timers returns the Stream with which the workers read and write the timers' stream.
func (b *Broker) timers(write *acks.Inbox) *role.Stream {
	names, keys := b.names, b.keys
	return role.NewStream(role.Config{
		Instance: b.id, Policy: keys.Policy, History: max(0, b.cfg.TimerHistory), Reserve: provision.LevelReserve,
		API: b.jetstream.API, Copies: jsapi.Client{Conn: b.links.Read, API: b.cfg.APIPrefix},
		Sample: b.jetstream.Sample, Publish: publishAndWait(write, names.TimersStream()),
		Scan:     lane.Scan{Conn: b.links.Read, JetStream: b.readJetStream, APIPrefix: b.cfg.APIPrefix},
		ReadKeys: func(now time.Time) { keys.ReadSince(now, now) },
	})
}

// publishAndWait returns a function that publishes a message to a stream and waits for the answer. The function ignores
// an answer that does not name the stream: a subscriber that got the message may have sent that answer.
func publishAndWait(write *acks.Inbox, stream string) func(context.Context, *nats.Msg) jsapi.Reply {
	return func(ctx context.Context, m *nats.Msg) jsapi.Reply {
		replies := make(chan jsapi.Reply, 1)
		timeout := jsapi.Timeout
		if deadline, ok := ctx.Deadline(); ok {
			timeout = max(time.Millisecond, min(timeout, time.Until(deadline)))
		}
		write.Publish(m, timeout, func(answer *nats.Msg, err error) (pending bool) {
			reply, ok := jsapi.ReplyOf(answer, err, stream)
			if ok {
				replies <- reply
			}
			return !ok
		})
		select {
		case reply := <-replies:
			return reply
		case <-ctx.Done():
			return jsapi.Reply{Err: ctx.Err()}
		}
	}
}
