package lease

import (
	"fmt"
	"time"
)

// takeoverTimeout is the time after which this run takes over from an earlier run of this instance, if the earlier
// run's counter has not changed. A live earlier run would answer a call within this time.
const takeoverTimeout = 300 * time.Millisecond

// sharesIdentity reports whether an instance has this instance's name or place.
func (s *Shared) sharesIdentity(i Instance) bool {
	return i.Name != "" && i.Name == s.cfg.Name || i.Place != "" && i.Place == s.self.place
}

// isDead reports whether an instance of the table is dead. An instance at the place that this instance has locked is
// dead: only one instance can hold the lock.
func (s *Shared) isDead(id string, i Instance) bool {
	return s.cfg.Locked && s.sharesIdentity(i) && i.Name == "" ||
		s.view.liveness.unchangedFor(id) >= s.timeout(id, i)
}

// timeout returns the time after which an instance counts as dead if its counter has not changed.
func (s *Shared) timeout(id string, i Instance) time.Duration {
	own, joined := s.view.table.Instances[s.self.id]
	earlier := i.Started <= s.self.started && (!joined || i.Joined < own.Joined)
	if earlier && s.sharesIdentity(i) && !s.view.liveness.everAlive(id) {
		return takeoverTimeout
	}
	return livenessTimeout
}

// checkIdentities acts on instances that have this instance's name or place and have ever shown a sign of life: see
// "Instances that restart" in the package documentation.
func (s *Shared) checkIdentities() {
	for id, i := range s.view.table.Instances {
		if id == s.self.id || !s.sharesIdentity(i) || !s.view.liveness.everAlive(id) {
			continue
		}
		switch younger := i.Started < s.self.started || i.Started == s.self.started && id < s.self.id; {
		case !younger:
			if !s.logState.youngerExists && i.Place == "" {
				s.log.Error("a younger instance has the same name, and stops; give each instance a unique name",
					"instance", id, "name", i.Name)
			}
			s.logState.youngerExists = true
		case i.Place != "":
			s.log.Warn("another instance runs at the same place (host name and address), so a restart of this instance "+
				"after a crash waits 5s for its lanes; set DELAY_INSTANCE to a unique name for each instance",
				"instance", id, "place", i.Place)
			s.self.place = ""
		case !s.logState.olderExists:
			s.logState.olderExists = true
			s.mu.Lock()
			s.state.leaving = true
			s.mu.Unlock()
			if s.cfg.Fail != nil {
				start := time.Unix(0, i.Started).UTC().Format(time.RFC3339)
				s.cfg.Fail(fmt.Errorf("%w, %q: %s started earlier, at %s, so this instance stops; "+
					"give each instance a unique name, or give none a name", ErrNameInUse, i.Name, id, start))
			}
		}
	}
}
