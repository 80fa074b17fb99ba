package lease

import (
	"errors"
	"fmt"
	"time"
)

// ErrNamesake is passed to SharedConfig.Fail when an elder instance lives that has the name the operator gave to this
// one. Give each instance a name of its own, or none.
var ErrNamesake = errors.New("another instance has the same name")

// namesakeAfter is how long a counter must stand still if it belonged to an earlier run of this very instance, which
// would have raised it at once when it was asked.
const namesakeAfter = 300 * time.Millisecond

// isNamesake reports whether an instance has our name, or runs where we do.
func (s *Shared) isNamesake(i Instance) bool {
	return i.Name != "" && i.Name == s.cfg.Name || i.Place != "" && i.Place == s.place
}

// gone reports whether an instance of the table does not run any more.
func (s *Shared) gone(id string, i Instance) bool {
	return s.cfg.Locked && s.isNamesake(i) && i.Name == "" || s.roster.still(id) >= s.patience(id, i)
}

// patience is how long an instance's counter may stand still.
func (s *Shared) patience(id string, i Instance) time.Duration {
	own, in := s.table.Instances[s.id]
	if s.isNamesake(i) && i.Started <= s.started && (!in || i.Joined < own.Joined) && !s.roster.lives(id) {
		return namesakeAfter
	}
	return lostAfter
}

// namesakes looks for instances that live and have our name. The younger of two gives way: it stops, or, when the name
// was only derived from where it runs, it goes on without one.
func (s *Shared) namesakes() {
	for id, i := range s.table.Instances {
		if id == s.id || !s.isNamesake(i) || !s.roster.lives(id) {
			continue
		}
		switch younger := i.Started < s.started || i.Started == s.started && id < s.id; {
		case !younger:
			if !s.elder {
				s.log.Error("a younger instance has the name of this one, and gives way", "instance", id, "name", i.Name,
					"place", i.Place)
			}
			s.elder = true
		case i.Place != "":
			s.log.Warn("another instance runs at the same place, by its host's name and address: a crash of this one is "+
				"noticed after 5s only. "+
				"Give each a DELAY_INSTANCE of its own", "instance", id, "place", i.Place)
			s.place = ""
		case !s.namesake:
			s.namesake = true
			s.mu.Lock()
			s.leaving = true
			s.mu.Unlock()
			if s.cfg.Fail != nil {
				s.cfg.Fail(fmt.Errorf("%w, %q: %s is there since %s, and this one is the younger; give each a name of its own, "+
					"or none",
					ErrNamesake, i.Name, id, time.Unix(0, i.Started).UTC().Format(time.RFC3339)))
			}
		}
	}
}
