package streams

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/test/natstest"
)

// TestOperatorsChangesStay: the changes of an operator stay when the ladder changes.
func TestOperatorsChangesStay(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		mustProvision(t, provisioner(js, true), wantedSpecs("1m", "30m"))
		// The last two subjects only begin with the same letters as the broker's.
		extra := []string{"mine.>", "delayed.orders.>", "delay2.30m.>"}
		natstest.Reconfigure(t, js, "DELAY_30m", func(c *jetstream.StreamConfig) {
			c.Description, c.MaxBytes = "mine", 1<<30
			c.Subjects = append(c.Subjects, extra...)
			c.Metadata["mine"] = "yes"
		})
		for _, ladder := range [][]string{{"1m", "30m"}, {"1m"}, {"1m", "30m"}} {
			mustProvision(t, provisioner(js, true), wantedSpecs(ladder...))
			cfg := configOf(t, js, "DELAY_30m")
			if cfg.Description != "mine" || cfg.MaxBytes != 1<<30 || cfg.Metadata["mine"] != "yes" ||
				cfg.Metadata[metaKind] != "level" {
				t.Errorf("with levels %v the stream is %+v, want the operator's settings", ladder, cfg)
			}
			for _, s := range extra {
				if !slices.Contains(cfg.Subjects, s) {
					t.Errorf("with levels %v the stream no longer listens on the operator's %s", ladder, s)
				}
			}
		}
	})
}

// TestLevelRemovedAndAdded moves a client subject from its level to the intake and back. The server refuses two streams
// on one subject, so a move with an overlap would fail.
func TestLevelRemovedAndAdded(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		holder := func(subject string) string {
			name, err := js.StreamNameBySubject(t.Context(), subject)
			if err != nil {
				t.Errorf("the stream of %s: %v", subject, err)
			}
			return name
		}
		check := func(levels []string, stream string) {
			t.Helper()
			found, drift := mustProvision(t, provisioner(js, true), wantedSpecs(levels...))
			if got := holder("delay.7m.x"); got != stream {
				t.Errorf("with levels %v, delay.7m belongs to %s, want %s", levels, got, stream)
			}
			if got := holder("delaysys.hop.7m.x"); got != "DELAY_7m" {
				t.Errorf("with levels %v, hops into 7m belong to %s, want DELAY_7m", levels, got)
			}
			if got, want := names(found), "DELAY_1m DELAY_30m DELAY_7m DELAY_DEAD DELAY_INTAKE"; got != want || len(drift) > 0 {
				t.Errorf("with levels %v, found %s with drift %v, want %s", levels, got, drift, want)
			}
		}
		check([]string{"1m", "7m", "30m"}, "DELAY_7m")
		check([]string{"1m", "30m"}, "DELAY_INTAKE")
		check([]string{"1m", "7m", "30m"}, "DELAY_7m")
		check([]string{"1m", "30m"}, "DELAY_INTAKE")
		// All levels and the intake swap subjects at the same time.
		check([]string{"7m"}, "DELAY_7m")
		check([]string{"1m", "30m"}, "DELAY_INTAKE")
	})
}

// TestForeignStreamsStay: streams with another prefix, or without marks, are neither found nor changed.
func TestForeignStreamsStay(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		other := Provisioner{Streams: js, Names: namesOf("other"), MayCreate: true}
		mustProvision(t, other,
			[]Spec{{Stream: "OTHER_30m", Kind: Level, Name: "30m", Prefix: "other", Subjects: []string{"other.30m.>"},
				Replicas: 1}})
		if _, err := js.JetStream.CreateStream(t.Context(),
			jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
			t.Fatal(err)
		}
		specs := wantedSpecs("1m", "30m")
		found, _ := mustProvision(t, provisioner(js, true), specs)
		if got := names(found); got != names(specs) {
			t.Errorf("found %s, want %s", got, names(specs))
		}
		if got, want := configOf(t, js, "OTHER_30m").Subjects, []string{"other.30m.>"}; !slices.Equal(got, want) {
			t.Errorf("the subjects of OTHER_30m are %v, want %v", got, want)
		}
	})
}

type changeWatcher struct {
	*changeCounter
	changed func()
}

func (w changeWatcher) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	defer w.changed()
	return w.changeCounter.CreateStream(ctx, cfg)
}

func (w changeWatcher) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	defer w.changed()
	return w.changeCounter.UpdateStream(ctx, cfg)
}

// TestSubjectsMoveOneByOne: while levels are added and removed, at most one client subject at a time has no stream, and
// only between two consecutive changes.
func TestSubjectsMoveOneByOne(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		mustProvision(t, provisioner(js, true), wantedSpecs("1m", "7m", "30m"))
		for _, ladder := range [][]string{{}, {"1m", "7m", "30m"}, {"7m"}, {"1m", "30m"}} {
			var before []string
			streams := changeWatcher{js, func() {
				var without []string
				for _, subject := range []string{"delay.1m.x", "delay.7m.x", "delay.30m.x", "delayin.5s.x"} {
					if _, err := js.StreamNameBySubject(t.Context(), subject); err != nil {
						without = append(without, subject)
					}
				}
				if len(without) > 1 || len(before) > 0 && len(without) > 0 {
					t.Errorf("to levels %v: no stream listens on %v after one change, and on %v after the next", ladder,
						before, without)
				}
				before = without
			}}
			p := provisioner(js, true)
			p.Streams = streams
			if _, drift := mustProvision(t, p, wantedSpecs(ladder...)); len(drift) > 0 || len(before) > 0 {
				t.Errorf("to levels %v: drift %v, and no stream listens on %v; want neither", ladder, drift, before)
			}
		}
	})
}

type creationRefuser struct{ jetstream.JetStream }

var errNoRight = errors.New("no permission to create a stream")

func (creationRefuser) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	return nil, errNoRight
}

// TestRefusedStreamTakesNoSubjects: if the stream of a new level cannot be created, the intake keeps its subjects.
func TestRefusedStreamTakesNoSubjects(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		mustProvision(t, provisioner(js, true), wantedSpecs("1m"))
		before := configOf(t, js, "DELAY_INTAKE").Subjects
		p := provisioner(creationRefuser{js}, true)
		if _, _, err := p.Provision(context.Background(), wantedSpecs("1m", "7m")); !errors.Is(err, errNoRight) {
			t.Fatalf("got %v, want %v", err, errNoRight)
		}
		if got := configOf(t, js, "DELAY_INTAKE").Subjects; !slices.Equal(got, before) {
			t.Errorf("the intake listens on %v, want %v", got, before)
		}
	})
}

// TestLevelWithoutFreeSubject: a new level gets its subjects even if the intake has all of them.
func TestLevelWithoutFreeSubject(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		mustProvision(t, provisioner(js, true), wantedSpecs("1m"))
		natstest.Reconfigure(t, js, "DELAY_INTAKE", func(c *jetstream.StreamConfig) {
			c.Subjects = append(c.Subjects, "delaysys.hop.7m.>")
		})
		mustProvision(t, provisioner(js, true), wantedSpecs("1m", "7m"))
		for _, subject := range []string{"delay.7m.>", "delaysys.hop.7m.>"} {
			if !slices.Contains(configOf(t, js, "DELAY_7m").Subjects, subject) {
				t.Errorf("the level does not listen on %s", subject)
			}
			if slices.Contains(configOf(t, js, "DELAY_INTAKE").Subjects, subject) {
				t.Errorf("the intake still listens on %s", subject)
			}
		}
	})
}
