package lease

import (
	"fmt"
	"time"
)

// namesakeAfter is the time for which the counter of an earlier run of this instance must not change before this run
// takes over. A live run would have answered a call by then.
const namesakeAfter = 300 * time.Millisecond

// isNamesake reports whether an instance has this instance's name or place.
func (s *Shared) isNamesake(i Instance) bool {
	return i.Name != "" && i.Name == s.cfg.Name || i.Place != "" && i.Place == s.self.place
}

// gone reports whether an instance of the table is dead.
func (s *Shared) gone(id string, i Instance) bool {
	return s.cfg.Locked && s.isNamesake(i) && i.Name == "" || s.view.roster.still(id) >= s.timeout(id, i)
}

// timeout returns the timeout after which an instance with an unchanged counter is dead.
func (s *Shared) timeout(id string, i Instance) time.Duration {
	own, in := s.view.table.Instances[s.self.id]
	if s.isNamesake(i) && i.Started <= s.self.started && (!in || i.Joined < own.Joined) && !s.view.roster.lives(id) {
		return namesakeAfter
	}
	return lostAfter
}

// namesakes checks for live instances with this instance's name or place. The younger of two yields: it stops if they
// share a name, and continues without a place if they share a place.
func (s *Shared) namesakes() {
	for id, i := range s.view.table.Instances {
		if id == s.self.id || !s.isNamesake(i) || !s.view.roster.lives(id) {
			continue
		}
		switch younger := i.Started < s.self.started || i.Started == s.self.started && id < s.self.id; {
		case !younger:
			if !s.logged.youngerNamesake {
				s.log.Error("a younger instance has the name of this one, and gives way", "instance", id, "name", i.Name,
					"place", i.Place)
			}
			s.logged.youngerNamesake = true
		case i.Place != "":
			s.log.Warn("another instance runs at the same place, by its host's name and address: a crash of this one is "+
				"noticed after 5s only. Give each a DELAY_INSTANCE of its own", "instance", id, "place", i.Place)
			s.self.place = ""
		case !s.logged.elderNamesake:
			s.logged.elderNamesake = true
			s.mu.Lock()
			s.local.leaving = true
			s.mu.Unlock()
			if s.cfg.Fail != nil {
				since := time.Unix(0, i.Started).UTC().Format(time.RFC3339)
				s.cfg.Fail(fmt.Errorf("%w, %q: %s is there since %s, and this one is the younger; "+
					"give each a name of its own, or none", ErrNamesake, i.Name, id, since))
			}
		}
	}
}
