package link

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

const (
	// refusedFor is the time for which a refusal is kept. A broker repeats a necessary request within seconds, so an older
	// refusal means that the permission was granted meanwhile.
	refusedFor = 2 * time.Minute
	// maxRefusals is the maximum number of refusals. The oldest is dropped first.
	maxRefusals = 32
)

// A Refusal is a permission that the server denied to a connection.
type Refusal struct {
	Link  string    `json:"link"`  // "read", "write", "deliver" or "control"
	Right string    `json:"right"` // in the server's words: Publish to delaysys.owners.table
	At    time.Time `json:"at"`    // of the last denial
}

// Refusals holds the permissions that the server denied recently. The zero value is empty. It is safe for concurrent
// use.
type Refusals struct {
	mu  sync.Mutex
	all []Refusal // the newest last
}

// Note records an asynchronous error of a connection, if it is a refusal.
func (r *Refusals) Note(link string, now time.Time, err error) {
	right, ok := jsapi.RefusedOperation(err)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(a Refusal) bool { return a.Link == link && a.Right == right })
	r.all = append(r.all, Refusal{link, right, now})
	r.all = r.all[max(0, len(r.all)-maxRefusals):]
}

// Lately returns the refusals within refusedFor.
func (r *Refusals) Lately(now time.Time) []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.all), func(a Refusal) bool { return now.Sub(a.At) > refusedFor })
}

// Each calls f once for each connection. If one connection has several purposes, Each passes only its first name.
func (l Links) Each(f func(name string, nc *nats.Conn)) {
	var seen []*nats.Conn
	for _, of := range []struct {
		name string
		conn *nats.Conn
	}{{"control", l.Control}, {"read", l.Read}, {"write", l.Write}, {"deliver", l.Deliver}} {
		if !slices.Contains(seen, of.conn) {
			seen = append(seen, of.conn)
			f(of.name, of.conn)
		}
	}
}
