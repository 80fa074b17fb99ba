package inspect

import (
	"slices"
	"testing"

	"delaybroker/broker/config"
	"delaybroker/test/natstest"
)

// intakeConfig returns a configuration whose intake takes all durations that are not levels. Adopt derives the levels
// from the durations that the intake lacks.
func intakeConfig(t *testing.T, prefix, ladder string) config.Config {
	t.Helper()
	cfg := configOf(t, prefix, ladder)
	cfg.IntakeDurations = nil
	return cfg
}

func (i *Inspector) streamNames() []string {
	var names []string
	for _, s := range i.Wanted() {
		names = append(names, s.Stream)
	}
	return names
}

// TestAdopt: Adopt reads settings from the broker's streams, except those that the operator has set.
func TestAdopt(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := intakeConfig(t, "later", "1s 5s 7s")
		cfg.RetryLadder = configOf(t, "", "2s 9s").Ladder
		createStreams(t, s, cfg)
		want := open(t, s, cfg, "").streamNames()

		i := open(t, s, config.Config{}, "")
		adoption, err := i.Adopt(t.Context(), Overrides{})
		if err != nil || adoption.Prefix != "later" || adoption.Choices != nil {
			t.Errorf("got %+v, %v, want the prefix later", adoption, err)
		}
		if got := i.streamNames(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}

		configured := intakeConfig(t, "delay", "1s 13s")
		for _, set := range []Overrides{{Prefix: true}, {Prefix: true, Levels: true, Retry: true}} {
			i = open(t, s, configured, "")
			if adoption, err = i.Adopt(t.Context(), set); err != nil || adoption.Prefix != "" {
				t.Errorf("%+v: got %+v, %v, want the configured prefix", set, adoption, err)
			}
			if got, want := i.streamNames(), open(t, s, configured, "").streamNames(); !slices.Equal(got, want) {
				t.Errorf("%+v: got %q, want %q", set, got, want)
			}
		}

		createStreams(t, s, intakeConfig(t, "sooner", "1s"))
		i = open(t, s, config.Config{}, "")
		adoption, err = i.Adopt(t.Context(), Overrides{})
		if err != nil || !slices.Equal(adoption.Choices, []string{"later", "sooner"}) {
			t.Errorf("got %+v, %v, want the choices later and sooner", adoption, err)
		}
	})
}

// TestAdoptFindsMissingLevel: Adopt finds a level without a stream.
func TestAdoptFindsMissingLevel(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := intakeConfig(t, "delay", "1s 5s 7s")
		createStreams(t, s, cfg)
		i := open(t, s, config.Config{}, "")
		if err := i.JetStream.DeleteStream(t.Context(), "DELAY_5s"); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Adopt(t.Context(), Overrides{}); err != nil {
			t.Fatal(err)
		}
		v, err := i.Lanes(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.lane("DELAY_5s").State; got != Missing {
			t.Errorf("DELAY_5s is %q, want %q", got, Missing)
		}
	})
}
