package lease

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Table is the state that all instances agree on: the running instances, and the owner of each lane. It is stored as
// one message. A write replaces the whole message, on condition that the stored message has not changed since the read.
type Table struct {
	// Version rises with every change, and is at least the writer's time in milliseconds since 1970. So a table that was
	// created again has a higher version than the lost one. A table that is written back unchanged keeps its version.
	Version uint64 `json:"version,omitempty"`
	// Replaces is the sequence of the message that this table replaced. It distinguishes the table from an older copy with
	// the same version.
	Replaces  uint64              `json:"replaces,omitempty"`
	Instances map[string]Instance `json:"instances"`
	Lanes     map[string]Claim    `json:"lanes"`
}

// Instance is a running broker.
type Instance struct {
	Name    string   `json:"name,omitempty"`    // the operator's name for the instance, or empty
	Place   string   `json:"place,omitempty"`   // see SharedConfig; empty if unknown
	Started int64    `json:"started,omitempty"` // nanoseconds since 1970, by its own clock
	Joined  uint64   `json:"joined"`            // higher than that of each instance that joined earlier
	Lanes   []string `json:"lanes"`             // the lanes that the instance can own, sorted
	Format  int      `json:"format,omitempty"`  // newest format that the instance reads; zero for an older broker
}

// Claim is the ownership of a lane.
type Claim struct {
	Instance string    `json:"instance,omitempty"` // empty when the lane is free
	Epoch    uint64    `json:"epoch"`              // rises with each owner
	Next     uint64    `json:"next,omitempty"`     // see Cursor
	Created  time.Time `json:"created,omitzero"`   // see Cursor
}

// ParseTable parses a table. Empty data is an empty table.
func ParseTable(data []byte) (Table, error) {
	var t Table
	if len(data) > 0 {
		if err := json.Unmarshal(data, &t); err != nil {
			return Table{}, err
		}
	}
	return t.clone(), nil
}

func (t Table) clone() Table {
	c := Table{Version: t.Version, Replaces: t.Replaces, Instances: maps.Clone(t.Instances), Lanes: maps.Clone(t.Lanes)}
	if c.Instances == nil {
		c.Instances = make(map[string]Instance)
	}
	if c.Lanes == nil {
		c.Lanes = make(map[string]Claim)
	}
	return c
}

// supersedes reports whether a stored table is newer than the known table, or equal to it.
func (t Table) supersedes(known Table) bool {
	return t.Version > known.Version || t.Version == known.Version && (t.Replaces > known.Replaces || t.equal(known))
}

// merge returns the stored table. For a lane in both tables, it takes the claim of the known table if that is later.
// Lost reports whether there was such a claim. The stored table lacks the claim if a client's message hid the last good
// table from an instance, and that instance wrote an older table back. The lane may have a working owner.
func (t Table) merge(known Table) (merged Table, lost bool) {
	merged = t.clone()
	for lane, c := range known.Lanes {
		if stored, ok := t.Lanes[lane]; ok && c.laterThan(stored) {
			merged.Lanes[lane], lost = c, true
		}
	}
	return merged, lost
}

// laterThan reports whether a claim is certainly later than another claim of its lane. A free lane keeps the epoch of
// its last owner.
func (c Claim) laterThan(other Claim) bool {
	return c.Epoch > other.Epoch || c.Epoch == other.Epoch && c.Instance == "" && other.Instance != ""
}

// equal reports whether two tables have the same instances and claims.
func (t Table) equal(other Table) bool {
	return maps.EqualFunc(t.Instances, other.Instances, func(a, b Instance) bool {
		return a.Name == b.Name && a.Place == b.Place && a.Started == b.Started && a.Joined == b.Joined &&
			a.Format == b.Format && slices.Equal(a.Lanes, b.Lanes)
	}) && maps.EqualFunc(t.Lanes, other.Lanes, func(a, b Claim) bool {
		return a.Instance == b.Instance && a.Epoch == b.Epoch && a.Next == b.Next && a.Created.Equal(b.Created)
	})
}

// join adds an instance, or updates its entry.
func (t Table) join(id string, entry Instance) {
	if previous, ok := t.Instances[id]; ok {
		entry.Joined = previous.Joined
	} else {
		for _, other := range t.Instances {
			entry.Joined = max(entry.Joined, other.Joined)
		}
		entry.Joined++
	}
	t.Instances[id] = entry
}

func (t Table) drop(id string) {
	delete(t.Instances, id)
	for lane, c := range t.Lanes {
		if c.Instance == id {
			t.free(lane, Cursor{})
		}
	}
}

// free ends a claim. If cursor is zero, the claim keeps its earlier cursor: a cursor that is too low is still correct.
func (t Table) free(lane string, cursor Cursor) {
	c := t.Lanes[lane]
	c.Instance = ""
	if cursor.Next > 0 {
		c.Next, c.Created = cursor.Next, cursor.Created
	}
	t.Lanes[lane] = c
}

// claim enters an instance as the owner of a lane.
func (t Table) claim(lane, id string) {
	c := t.Lanes[lane]
	c.Instance = id
	c.Epoch++
	t.Lanes[lane] = c
}

// members returns the instances in the order in which they joined.
func (t Table) members() []string {
	return slices.SortedFunc(maps.Keys(t.Instances), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Instances[a].Joined, t.Instances[b].Joined), cmp.Compare(a, b))
	})
}
