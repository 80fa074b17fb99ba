package lane

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullBatch = 500 // messages in one request
	// maxRequests is the maximum number of open requests: two that overlap, and one with a quick heartbeat when messages
	// arrive after the lane was idle.
	maxRequests = 3
)

// requests are the open requests of one consumer.
//
// The reader receives messages only while a request is open. The server reports the end of a request, except in one
// case: if messages use up the bytes of a request exactly, the request ends without a report, even if more messages
// were requested (nats-server, consumer.nextWaiting). A reader that relied on the server's reports would then wait for
// messages that never come. At the tail of a lane on a single server, the reader would notice the missing heartbeats
// only after 25 minutes.
//
// The server distributes the messages over a consumer's open requests in turn. So each place, which holds at most one
// open request, has its own subscription: the subscription of a message identifies its request. The reader counts the
// messages and bytes of each request as the server does.
type requests struct {
	inbox      string // with the final dot; each request appends its place and its number
	places     [maxRequests]place
	lastNumber int // of the last request
}

// place holds at most one open request.
type place struct {
	sub            *nats.Subscription
	reply          string // subject of the control messages for the request
	messagesLeft   int    // number of messages that the server may still send
	batch          int    // number of messages requested
	bytesRequested int
	bytesLeft      int  // number of bytes that the server may still send
	quick          bool // the request has quickHeartbeat
	noWait         bool // see body
}

// open reports whether the server may still send a message for the request.
func (q *place) open() bool { return q.messagesLeft > 0 && q.bytesLeft > 0 }

// halfUsed reports whether at least half of the request is used. Large means that the next message may fill a request
// alone. Then only the number of messages counts, not the bytes.
func (q *place) halfUsed(large bool) bool {
	return q.messagesLeft <= q.batch/2 || !large && q.bytesLeft <= q.bytesRequested/2
}

func (q *place) end() { q.messagesLeft = 0 }

// subscribe subscribes to the replies of all requests. The messages go to one channel, so they keep the server's order.
func (rs *requests) subscribe(nc *nats.Conn, prefix string, msgs chan *nats.Msg) error {
	rs.inbox = prefix + "." + rand.Text() + "."
	for i := range rs.places {
		sub, err := nc.ChanSubscribe(rs.inbox+strconv.Itoa(i)+".*", msgs)
		if err != nil {
			return fmt.Errorf("subscribe to the inbox: %w", err)
		}
		rs.places[i].sub = sub
	}
	return nil
}

func (rs *requests) unsubscribe() {
	for _, q := range rs.places {
		if q.sub != nil {
			_ = q.sub.Unsubscribe() // fails only on a closed connection
		}
	}
}

func (rs *requests) lookup(m *nats.Msg) *place {
	for i := range rs.places {
		if rs.places[i].sub == m.Sub {
			return &rs.places[i]
		}
	}
	panic("bug: a message arrived for no request")
}

func (rs *requests) endAll() {
	for i := range rs.places {
		rs.places[i].end()
	}
}

// nextPlace returns a free place for a request. Ok is false if no place is free, or if no request is needed now. A
// request is needed in three cases: no request is open, one request is open and half used or, before the tail, no open
// request has a quick heartbeat.
func (rs *requests) nextPlace(tail, large bool) (place int, ok bool) {
	open, fresh, quick := 0, false, tail // fresh: an open request is less than half used
	place = -1
	for i := range rs.places {
		switch q := &rs.places[i]; {
		case q.open():
			open++
			fresh = fresh || !q.halfUsed(large)
			quick = quick || q.quick
		case place < 0:
			place = i
		}
	}
	return place, place >= 0 && (!quick || !fresh && open < maxRequests-1)
}

func (rs *requests) anyOpen() bool {
	return slices.ContainsFunc(rs.places[:], func(q place) bool { return q.open() })
}

// covers reports whether an open request with noWait has room for more than the given number of messages.
func (rs *requests) covers(messages uint64) bool {
	return slices.ContainsFunc(rs.places[:], func(q place) bool {
		return q.open() && q.noWait && messages < uint64(q.messagesLeft)
	})
}

// send sends a request on the subject of the consumer, and records it in a place.
func (rs *requests) send(nc *nats.Conn, subject string, place int, b body) error {
	rs.lastNumber++
	q := &rs.places[place]
	q.reply = rs.inbox + strconv.Itoa(place) + "." + strconv.Itoa(rs.lastNumber)
	if err := b.send(nc, subject, q.reply); err != nil {
		return err
	}
	q.messagesLeft, q.batch = b.Batch, b.Batch
	q.bytesRequested, q.bytesLeft = b.MaxBytes, b.MaxBytes
	q.quick, q.noWait = b.Heartbeat <= quickHeartbeat, b.NoWait
	return nil
}

// body is the JSON body of a pull request.
type body struct {
	Batch    int `json:"batch"`
	MaxBytes int `json:"max_bytes"`
	// NoWait makes the server end the request when it has sent all stored messages that the consumer has not sent before.
	// If there are none, and Expires is set, the server sends the next message when it is stored, and then ends the
	// request.
	NoWait    bool          `json:"no_wait,omitempty"`
	Expires   time.Duration `json:"expires,omitempty"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
}

func (b body) send(nc *nats.Conn, subject, reply string) error {
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("bug: encode the request: %w", err)
	}
	if err := nc.PublishRequest(subject, reply, data); err != nil {
		return fmt.Errorf("request messages: %w", err)
	}
	return nil
}
