package link

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

const (
	// maxAge is the age up to which a denial counts as recent. A broker repeats a necessary request within seconds. So
	// an older denial no longer matters.
	maxAge = 2 * time.Minute
	// maxDenials is the maximum number of denials in memory. The oldest denial is dropped first.
	maxDenials = 32
)

// A Denial is a permission that the server denied to a connection.
type Denial struct {
	Link  string    `json:"link"`  // "read", "write", "deliver" or "control"
	Right string    `json:"right"` // the denied operation in the server's words: Publish to delaysys.owners.table
	At    time.Time `json:"at"`    // time of the last denial
}

// Denials holds the permissions that the server denied recently. The zero value is empty and ready to use. It is safe
// for concurrent use.
type Denials struct {
	mu   sync.Mutex // guards list
	list []Denial   // the newest last
}

// Note records an asynchronous error of a connection if the error is a denial. It ignores any other error.
func (r *Denials) Note(link string, now time.Time, err error) {
	right, ok := jsapi.RefusedOperation(err)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(a Denial) bool { return a.Link == link && a.Right == right })
	r.list = append(r.list, Denial{link, right, now})
	r.list = r.list[max(0, len(r.list)-maxDenials):]
}

// Recent returns the denials of the last two minutes, the newest last.
func (r *Denials) Recent(now time.Time) []Denial {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.list), func(a Denial) bool { return now.Sub(a.At) > maxAge })
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
