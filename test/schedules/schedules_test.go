package schedules

import (
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

func TestServerProbe(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		st := besideServer(t, s)
		all := rules()
		for i, lines := range st.play(t, all, func() {}) {
			t.Logf("%s: %s\n    %s", all[i].section, all[i].name, strings.Join(lines, "\n    "))
		}
	})
}

func TestBrokerProbe(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		st, stop := besideBroker(t, s)
		all := rules()
		for i, lines := range st.play(t, all, func() {}) {
			t.Logf("%s: %s\n    %s", all[i].section, all[i].name, strings.Join(lines, "\n    "))
		}
		stop()
	})
}
