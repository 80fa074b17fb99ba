package lease

import (
	"encoding/json"
	"maps"
	"time"
)

// Claim is the state that all instances agree on: which of them is active, and where it stopped. It is stored as one
// message. A write replaces the message, on condition that the stored message has not changed since the read.
type Claim struct {
	// Epoch rises each time that an instance becomes active. Of two claims, the one with the higher epoch is valid.
	Epoch uint64 `json:"epoch"`
	// Version rises with every write, and is at least the writer's time in milliseconds since 1970. So an old claim that
	// is stored again has a lower version than the valid one.
	Version uint64 `json:"version"`
	// Active is the active instance. Its id is empty after a release.
	Active Instance `json:"active"`
	// Alone is set while the active instance hears no other one, and so renews the claim only every aloneInterval.
	Alone bool `json:"alone,omitempty"`
	// Cursors are the positions, by lane, at which the latest instance that released its activity has stopped. A cursor
	// that is too low is still correct.
	Cursors map[string]Cursor `json:"cursors,omitempty"`
}

// Instance describes a running broker.
type Instance struct {
	ID      string `json:"id,omitempty"`      // unique to one run
	Name    string `json:"name,omitempty"`    // the operator's name for the instance, or empty
	Place   string `json:"place,omitempty"`   // see Config.Place; empty if unknown
	Started int64  `json:"started,omitempty"` // nanoseconds since 1970, by its own clock
	Format  int    `json:"format,omitempty"`  // newest format of messages that it can read
}

// ParseClaim parses a stored claim.
func ParseClaim(data []byte) (Claim, error) {
	var c Claim
	err := json.Unmarshal(data, &c)
	return c, err
}

// supersedes reports whether a stored claim is newer than the known claim, or the same.
func (c Claim) supersedes(known Claim) bool {
	return c.Epoch > known.Epoch || c.Epoch == known.Epoch && c.Version >= known.Version
}

// renewed returns the claim for the next write by the active instance.
func (c Claim) renewed(now time.Time) Claim {
	c.Version = max(c.Version+1, uint64(now.UnixMilli()))
	return c
}

// taken returns the claim with which an instance becomes active.
func (c Claim) taken(by Instance, now time.Time) Claim {
	c = c.renewed(now)
	c.Epoch++
	c.Active = by
	return c
}

// released returns the claim with which the active instance ends its activity. Lanes without a cursor keep their
// earlier one.
func (c Claim) released(cursors map[string]Cursor, now time.Time) Claim {
	c = c.renewed(now)
	c.Active = Instance{}
	all := maps.Clone(c.Cursors)
	if all == nil {
		all = make(map[string]Cursor)
	}
	for lane, cursor := range cursors {
		if cursor.Next > 0 {
			all[lane] = cursor
		}
	}
	c.Cursors = all
	return c
}
