package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
)

// wantedSpecs returns the streams of these levels, the intake and the dead letters. The intake also takes those of the
// durations 1m, 7m and 30m that are not levels.
func wantedSpecs(levels ...string) []Spec {
	base := Spec{Prefix: "delay", MaxMsgSize: 1 << 20, Replicas: 1, Duplicates: 30 * time.Second}
	var all []Spec
	for _, name := range levels {
		s := base
		s.Stream, s.Kind, s.Name = "DELAY_"+name, Level, name
		s.Delay, _ = time.ParseDuration(name)
		s.Subjects = []string{"delay." + name + ".>", "delaysys.hop." + name + ".>"}
		all = append(all, s)
	}
	intake := base
	intake.Stream, intake.Kind = "DELAY_INTAKE", Intake
	intake.Subjects = []string{"delayin.*.>"}
	for _, name := range []string{"1m", "7m", "30m"} {
		if !slices.Contains(levels, name) {
			intake.Subjects = append(intake.Subjects, "delay."+name+".>")
		}
	}
	dead := base
	dead.Stream, dead.Kind, dead.MaxMsgSize, dead.Subjects = "DELAY_DEAD", Dead, -1, []string{"delaydead.>"}
	return append(all, intake, dead)
}

func provisioner(js jetstream.JetStream, create bool) Provisioner {
	return Provisioner{Streams: js, Names: namesOf("delay"), MayCreate: create}
}

func namesOf(prefix string) message.Names {
	names, err := message.NewNames(prefix)
	if err != nil {
		panic(err)
	}
	return names
}

type changeCounter struct {
	jetstream.JetStream
	changes int
}

func (c *changeCounter) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	c.changes++
	return c.JetStream.CreateStream(ctx, cfg)
}

func (c *changeCounter) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	c.changes++
	return c.JetStream.UpdateStream(ctx, cfg)
}

func bubbleJS(t *testing.T, f func(t *testing.T, js *changeCounter)) {
	t.Helper()
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		f(t, &changeCounter{JetStream: s.JetStream(s.Connect())})
	})
}

func mustProvision(t *testing.T, p Provisioner, specs []Spec) ([]Spec, []Drift) {
	t.Helper()
	found, drift, err := p.Provision(context.Background(), specs)
	if err != nil {
		t.Fatalf("Provision: %v", err)
	}
	return found, drift
}

func configOf(t *testing.T, js jetstream.JetStream, stream string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(context.Background(), stream)
	if err != nil {
		t.Fatalf("stream %s: %v", stream, err)
	}
	return s.CachedInfo().Config
}

func names(specs []Spec) string {
	var all []string
	for _, s := range specs {
		all = append(all, s.Stream)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestProvision: the first call creates all streams, and the second call changes none.
func TestProvision(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		specs := wantedSpecs("1m", "30m")
		for round, changes := range []int{4, 0} {
			js.changes = 0
			found, drift := mustProvision(t, provisioner(js, true), specs)
			if js.changes != changes || len(drift) > 0 {
				t.Errorf("round %d: %d changes, want %d; drift %v", round, js.changes, changes, drift)
			}
			if got := names(found); got != names(specs) {
				t.Errorf("round %d: found %s, want %s", round, got, names(specs))
			}
			for _, s := range found {
				i := slices.IndexFunc(specs, func(w Spec) bool { return w.Stream == s.Stream })
				if s.Secret == "" || s.Secret != found[0].Secret {
					t.Errorf("%s has the secret %q, want the same as %s", s.Stream, s.Secret, found[0].Stream)
				}
				s.Secret = ""
				if got, want := fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", specs[i]); got != want {
					t.Errorf("found %s, want %s", got, want)
				}
			}
		}
		cfg := configOf(t, js, "DELAY_30m")
		if cfg.Storage != jetstream.FileStorage || cfg.Retention != jetstream.LimitsPolicy ||
			cfg.Discard != jetstream.DiscardNew ||
			cfg.MaxAge != 0 || cfg.MaxMsgs > 0 || cfg.NoAck || cfg.AllowRollup || cfg.AllowMsgTTL || cfg.DenyPurge {
			t.Errorf("DELAY_30m was created as %+v, want a stream that keeps all messages", cfg)
		}
	})
}

// TestMissingStreams: without permission to create streams, Provision changes none, and the error names the missing
// ones.
func TestMissingStreams(t *testing.T) {
	bubbleJS(t, func(t *testing.T, js *changeCounter) {
		mustProvision(t, provisioner(js, true), wantedSpecs("1m"))
		js.changes = 0
		_, _, err := provisioner(js, false).Provision(context.Background(), wantedSpecs("1m", "7m", "30m"))
		if !errors.Is(err, ErrMissingStreams) || !strings.Contains(err.Error(), "DELAY_7m DELAY_30m") ||
			strings.Contains(err.Error(), "DELAY_1m") {
			t.Errorf("%v, want ErrMissingStreams and the two names", err)
		}
		if js.changes > 0 {
			t.Errorf("%d changes, want none", js.changes)
		}
	})
}

// TestForeignStream: Provision does not change a stream that has a name of the broker's and not the broker's marks.
func TestForeignStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		meta map[string]string
	}{
		{"no metadata", nil},
		{"another prefix", map[string]string{metaKind: "level", metaLevel: "30m", metaPrefix: "other",
			metaStream: "DELAY_30m"}},
		{"another kind", map[string]string{metaKind: "dead", metaPrefix: "delay", metaStream: "DELAY_30m"}},
		{"another level", map[string]string{metaKind: "level", metaLevel: "29m", metaPrefix: "delay",
			metaStream: "DELAY_30m"}},
		{"the marks of another stream", map[string]string{metaKind: "level", metaLevel: "30m", metaPrefix: "delay",
			metaStream: "DELAY_30m_BAK"}},
	} {
		for _, create := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, create %v", tt.name, create), func(t *testing.T) {
				bubbleJS(t, func(t *testing.T, js *changeCounter) {
					mustProvision(t, provisioner(js, true), wantedSpecs("1m"))
					cfg := jetstream.StreamConfig{Name: "DELAY_30m", Subjects: []string{"mine.>"}, Metadata: tt.meta}
					if _, err := js.CreateStream(context.Background(), cfg); err != nil {
						t.Fatal(err)
					}
					_, _, err := provisioner(js, create).Provision(context.Background(), wantedSpecs("1m", "30m"))
					if !errors.Is(err, ErrForeignStream) || !strings.Contains(err.Error(), "DELAY_30m") {
						t.Errorf("%v, want ErrForeignStream and the name", err)
					}
					if got := configOf(t, js, "DELAY_30m").Subjects; !slices.Equal(got, cfg.Subjects) {
						t.Errorf("the subjects of DELAY_30m are %v, want %v", got, cfg.Subjects)
					}
				})
			})
		}
	}
}

// TestDrift: Provision reports the drift of an existing stream, and does not change the stream. For each setting, see
// TestEverySettingIsJudged.
func TestDrift(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*jetstream.StreamConfig)
		fatal  bool
		says   string // part of the reported difference; empty for no difference
	}{
		{"a fatal difference", func(c *config) { c.MaxAge = time.Hour }, true, "max_age"},
		{"a warning", func(c *config) { c.Duplicates = time.Second }, false, "duplicate_window"},
		{"an operator's choice", func(c *config) { c.Description, c.MaxBytes = "mine", 1<<30 }, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleJS(t, func(t *testing.T, js *changeCounter) {
				mustProvision(t, provisioner(js, true), wantedSpecs("1m", "30m"))
				natstest.Reconfigure(t, js, "DELAY_30m", tt.change)
				before, changes := configOf(t, js, "DELAY_30m"), js.changes
				_, drift := mustProvision(t, provisioner(js, true), wantedSpecs("1m", "30m"))
				if tt.says == "" && len(drift) > 0 {
					t.Errorf("drift %v, want none", drift)
				}
				if tt.says != "" &&
					(len(drift) != 1 || drift[0].Fatal != tt.fatal || !strings.HasPrefix(drift[0].String(), "DELAY_30m: ") ||
						!strings.Contains(drift[0].Difference, tt.says)) {
					t.Errorf("drift %+v, want one about %s, fatal %v", drift, tt.says, tt.fatal)
				}
				if got, want := fmt.Sprint(configOf(t, js, "DELAY_30m")), fmt.Sprint(before); got != want || js.changes != changes {
					t.Errorf("DELAY_30m is now %s, want %s", got, want)
				}
			})
		})
	}
}
