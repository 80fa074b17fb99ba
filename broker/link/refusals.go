package link

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

const (
	// maxAge is the age up to which a refusal counts as recent. A broker repeats a necessary request within seconds. So an
	// older refusal no longer matters.
	maxAge = 2 * time.Minute
	// maxRefusals is the maximum number of refusals in memory. The oldest refusal is dropped first.
	maxRefusals = 32
)

// A Refusal is a permission that the server denied to a connection.
type Refusal struct {
	Link  string    `json:"link"`  // "read", "write", "deliver" or "control"
	Right string    `json:"right"` // the denied operation in the server's words: Publish to delaysys.owners.table
	At    time.Time `json:"at"`    // time of the last denial
}

// Refusals holds the permissions that the server denied recently. The zero value is empty and ready to use. It is safe
// for concurrent use.
type Refusals struct {
	mu   sync.Mutex // guards list
	list []Refusal  // the newest last
}

// Note records an asynchronous error of a connection if the error is a refusal. It ignores any other error.
func (r *Refusals) Note(link string, now time.Time, err error) {
	right, ok := jsapi.RefusedOperation(err)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(a Refusal) bool { return a.Link == link && a.Right == right })
	r.list = append(r.list, Refusal{link, right, now})
	r.list = r.list[max(0, len(r.list)-maxRefusals):]
}

// Recent returns the refusals of the last two minutes, the newest last.
func (r *Refusals) Recent(now time.Time) []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(a Refusal) bool { return now.Sub(a.At) > maxAge })
}

// Each calls f once for each connection. If several fields have the same connection, Each passes the first of these
// names: "control", "read", "write", "deliver".
func (l Links) Each(f func(name string, nc *nats.Conn)) {
	var seen []*nats.Conn
	for _, link := range []struct {
		name string
		conn *nats.Conn
	}{{"control", l.Control}, {"read", l.Read}, {"write", l.Write}, {"deliver", l.Deliver}} {
		if !slices.Contains(seen, link.conn) {
			seen = append(seen, link.conn)
			f(link.name, link.conn)
		}
	}
}
