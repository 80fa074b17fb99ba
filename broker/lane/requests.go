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
	pullBatch = 500 // messages asked for at a time
	// atOnce is how many requests may be open: two that overlap, and one with a quick heartbeat, when messages come after
	// the lane was idle.
	atOnce = 3
)

// requests are the open requests of one consumer.
//
// While the reader waits for messages, one request must be open, or none will come. The server says when a request
// ends, except in one case: a request whose bytes are used up exactly ends without a word, however many messages it has
// left (nats-server, consumer.nextWaiting). A reader that counts the outstanding messages only by the server's reports
// may then wait for messages that never come: at the tail of a lane for 25 minutes, until heartbeats are missed.
//
// The server deals the messages out to its open requests in turn. So each request has its own subscription, which shows
// the request to which a message belongs. The messages and bytes of each request are counted as the server counts them.
type requests struct {
	inbox string // with the final dot; each request adds its place and its number
	all   [atOnce]request
	last  int // the number of the last request
}

// request is a place for one request at a time.
type request struct {
	sub   *nats.Subscription
	reply string // subject of the server's words about it
	left  int    // messages that it may still bring
	bytes int    // that it asked for
	room  int    // bytes that it may still bring
	quick bool   // it has the heartbeat of the middle of a lane
	// collects says that the server ends the request once it has brought a message, and there is no other.
	collects bool
}

// open reports whether the request may bring another message.
func (q *request) open() bool { return q.left > 0 && q.room > 0 }

// half reports whether half of the request is used. The bytes do not count if it is for large messages: it holds one.
func (q *request) half(large bool) bool {
	return q.left <= pullBatch/2 || !large && q.room <= q.bytes/2
}

func (q *request) end() { q.left = 0 }

// subscribe listens for all requests. The messages go to one channel, so their order is the server's.
func (rs *requests) subscribe(nc *nats.Conn, prefix string, msgs chan *nats.Msg) error {
	rs.inbox = prefix + "." + rand.Text() + "."
	for i := range rs.all {
		sub, err := nc.ChanSubscribe(rs.inbox+strconv.Itoa(i)+".*", msgs)
		if err != nil {
			return fmt.Errorf("subscribe to the inbox: %w", err)
		}
		rs.all[i].sub = sub
	}
	return nil
}

func (rs *requests) unsubscribe() {
	for _, q := range rs.all {
		if q.sub != nil {
			_ = q.sub.Unsubscribe() // fails only on a closed connection
		}
	}
}

// of is the request that a message came for.
func (rs *requests) of(m *nats.Msg) *request {
	for i := range rs.all {
		if rs.all[i].sub == m.Sub {
			return &rs.all[i]
		}
	}
	panic("bug: a message that came for no request")
}

// forget ends all requests, because their consumer may be gone.
func (rs *requests) forget() {
	for i := range rs.all {
		rs.all[i].end()
	}
}

// wanting returns a place for the request that is to be sent now; ok is false if none is. One is, if none is open, if
// the only open one is half used, or if none has a quick heartbeat in the middle of a lane.
func (rs *requests) wanting(tail, large bool) (place int, ok bool) {
	open, fresh, quick := 0, false, tail
	place = -1
	for i := range rs.all {
		switch q := &rs.all[i]; {
		case q.open():
			open++
			fresh = fresh || !q.half(large)
			quick = quick || q.quick
		case place < 0:
			place = i
		}
	}
	return place, place >= 0 && (!quick || !fresh && open < atOnce-1)
}

// open reports whether any request is open.
func (rs *requests) open() bool {
	return slices.ContainsFunc(rs.all[:], func(q request) bool { return q.open() })
}

// covers reports whether an open request that collects brings as many messages, however they come.
func (rs *requests) covers(messages uint64) bool {
	return slices.ContainsFunc(rs.all[:], func(q request) bool {
		return q.open() && q.collects && messages < uint64(q.left)
	})
}

// send sends a request at a place, on the subject of the consumer.
func (rs *requests) send(nc *nats.Conn, subject string, place int, b body) error {
	rs.last++
	q := &rs.all[place]
	q.reply = rs.inbox + strconv.Itoa(place) + "." + strconv.Itoa(rs.last)
	if err := b.send(nc, subject, q.reply); err != nil {
		return err
	}
	q.left, q.bytes, q.room = b.Batch, b.MaxBytes, b.MaxBytes
	q.quick, q.collects = b.Heartbeat <= quickHeartbeat, b.NoWait
	return nil
}

// body is a request for messages as the server reads it.
type body struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"`
	NoWait    bool          `json:"no_wait,omitempty"` // with Expires: until there is a message, and no longer
	Expires   time.Duration `json:"expires,omitempty"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
}

// send sends it on the subject of a consumer.
func (b body) send(nc *nats.Conn, subject, reply string) error {
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("bug: encode the request: %w", err)
	}
	if err := nc.PublishRequest(subject, reply, data); err != nil {
		return fmt.Errorf("ask for messages: %w", err)
	}
	return nil
}
