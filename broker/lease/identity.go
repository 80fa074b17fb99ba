package lease

import (
	"fmt"
	"time"
)

// takeoverTimeout is the time after which this run takes over from an earlier run of this instance that has shown no
// sign of life. A live earlier run would answer a call within this time.
const takeoverTimeout = 300 * time.Millisecond

// sharesIdentity reports whether an instance has this instance's name or place.
func (m *Member) sharesIdentity(i Instance) bool {
	return i.Name != "" && i.Name == m.self.Name || i.Place != "" && i.Place == m.self.Place
}

// checkIdentities acts on live instances that have this instance's name or place: see "Instances that restart" in the
// package documentation.
func (m *Member) checkIdentities(peers []caller) {
	for _, p := range peers {
		if !m.sharesIdentity(p.Instance) {
			continue
		}
		switch younger := p.Started < m.self.Started || p.Started == m.self.Started && p.ID < m.self.ID; {
		case !younger:
			if !m.logState.youngerExists && p.Place == "" {
				m.log.Error("a younger instance has the same name, and stops; give each instance a unique name",
					"instance", p.ID, "name", p.Name)
			}
			m.logState.youngerExists = true
		case p.Place != "":
			m.log.Warn("another instance runs at the same place (host name and address), so a restart of this instance "+
				"after a crash takes some seconds longer; set DELAY_INSTANCE to a unique name for each instance",
				"instance", p.ID, "place", p.Place)
			m.self.Place = ""
		case !m.logState.olderExists:
			m.logState.olderExists = true
			if m.cfg.Fail != nil {
				start := time.Unix(0, p.Started).UTC().Format(time.RFC3339)
				m.cfg.Fail(fmt.Errorf("%w, %q: %s started earlier, at %s, so this instance stops; "+
					"give each instance a unique name, or give none a name", ErrNameInUse, p.Name, p.ID, start))
			}
		}
	}
}
