package streams

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/levels"
)

// FuzzSpec: a client that may create streams may write any metadata. A stream is accepted as the broker's only with the
// metadata with which the broker would have created that stream.
func FuzzSpec(f *testing.F) {
	f.Add("level", "30m", "delay")
	f.Add("retry", "5s", "delay")
	f.Add("intake", "", "delay")
	f.Add("rounds", "", "delay")
	f.Add("timers", "x", "delay")
	f.Add("level", "", "delay")
	f.Add("level", "1.5s", "delay")
	f.Add("", "30m", "delay")
	f.Add("level", "30m", "late")
	f.Fuzz(func(t *testing.T, kind, level, prefix string) {
		cfg := jetstream.StreamConfig{Name: "DELAY_x",
			Metadata: map[string]string{metaKind: kind, metaLevel: level, metaPrefix: prefix, metaStream: "DELAY_x"}}
		s, ok := parseMarks(cfg, "delay")
		switch {
		case !ok:
			if kind != "" && prefix == "delay" {
				t.Errorf("%+v: the stream is not recognized as the broker's", cfg.Metadata)
			}
			return
		case s.MarksErr != nil:
			if !strings.Contains(s.MarksErr.Error(), "delaybroker.") {
				t.Errorf("%v: want the name of the invalid key", s.MarksErr)
			}
			return
		}
		if _, err := levels.ParseDuration(level); (s.Kind == Level || s.Kind == Retry) && (err != nil || s.Delay < 0) {
			t.Errorf("level %q was accepted with the delay %s: %v", level, s.Delay, err)
		}
		if has := s.Config(); !sameMarks(has, cfg) {
			t.Errorf("the broker creates the stream with %+v, not with %+v", has.Metadata, cfg.Metadata)
		}
	})
}
