package engine

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"delaybroker/broker/config"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/pause"
)

// TestDecideAboutPaused checks the step of a due message by the states of the pauses that match its target: in another
// lane, in the lane of a pause, and after the message was released from the lane of a pause.
func TestDecideAboutPaused(t *testing.T) {
	ladder := mustLadder(t, "1s 5s 1m")
	list := func(first, second pause.State) *pause.List {
		return &pause.List{Version: 1, Pauses: []pause.Pause{
			{ID: "first", Pattern: "a.>", State: first}, {ID: "second", Pattern: "a.b", State: second},
		}}
	}
	for _, tt := range []struct {
		name          string
		first, second pause.State
		lane          string // the pause of the lane
		released      string
		unable        bool // the stream of paused messages cannot accept the message
		want          string
	}{
		{"not paused", pause.Over, pause.Over, "", "", false, "fire"},
		{"paused", pause.Paused, pause.Over, "", "", false, "park for first"},
		{"paused twice", pause.Paused, pause.Paused, "", "", false, "park for first"},
		{"resumed", pause.Resuming, pause.Over, "", "", false, "park for first"},
		{"closing", pause.Closing, pause.Over, "", "", false, "await close"},
		{"closing, and paused by another pause", pause.Closing, pause.Paused, "", "", false, "await close"},
		{"parking impossible", pause.Paused, pause.Over, "", "", true, "retry in 30s at 30s after 2"},
		{"in its lane", pause.Resuming, pause.Over, "first", "", false, "fire"},
		{"in its lane, closing", pause.Closing, pause.Over, "first", "", false, "fire"},
		{"in its lane, and paused by another pause", pause.Resuming, pause.Paused, "first", "", false, "park for second"},
		{"in its lane, and paused again", pause.Paused, pause.Over, "first", "", false, "hold until 1s"},
		{"in the lane of an unknown pause", pause.Over, pause.Over, "third", "", false, "fire"},
		{"released", pause.Resuming, pause.Over, "", "first", false, "fire"},
		{"released, and paused again", pause.Paused, pause.Over, "", "first", false, "park for first"},
		{"released, and paused by another pause", pause.Over, pause.Paused, "", "first", false, "park for second"},
	} {
		p := plan{kind: plainLane{}, Config: &config.Config{
			Ladder: ladder, RetryLadder: mustLadder(t, "1s 30s"), Attempts: 9,
		}}
		if tt.lane != "" {
			p.kind = pausedLane{pause: tt.lane}
		}
		f := &flight{Message: lane.Message{At: after(-time.Hour)}, request: message.Request{
			Target: "a.b", Due: after(-time.Minute), RetryAt: after(-time.Second), Reservation: "turn", Attempts: 2,
			ResumedPause: cmp.Or(tt.lane, tt.released),
		}}
		s := nextStep(p, moment{now: epoch, proven: true, pauses: list(tt.first, tt.second), canPark: !tt.unable}, f)
		got := s.String()
		switch s.kind {
		case park:
			got = "park for " + s.pause
			if r := *s.request; !r.RetryAt.IsZero() || r.Reservation != "turn" || r.ResumedPause != "" || r.Attempts != 2 {
				t.Errorf("%s: parked as %+v, want its attempts and its reservation, and no retry time", tt.name, r)
			}
		case awaitClose:
			got = "await close"
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	early := &flight{Message: lane.Message{At: after(0)}, request: message.Request{Target: "a.b", Due: after(1)}}
	p := plan{kind: plainLane{}, Config: &config.Config{Ladder: ladder}}
	m := moment{now: epoch, proven: true, pauses: list(pause.Paused, pause.Over)}
	if s := nextStep(p, m, early); s.kind != hold {
		t.Errorf("before it is due: %s, want hold", s)
	}
}

// TestParkingGivesUp: if the stream of paused messages does not answer a burst, it gets no further message after
// parkTimeout. After an answer, it gets messages for another parkTimeout.
func TestParkingGivesUp(t *testing.T) {
	var p parking
	start := time.Now()
	for range 2 * maxParking { // a burst
		if !p.accepts(start) {
			t.Fatal("a burst is refused")
		}
		p.begin(start)
	}
	p.recordAnswer(storeAnswer{Reply: jsapi.Reply{Err: errors.New("timeout")}}, start.Add(2*parkTimeout))
	if p.accepts(start.Add(parkTimeout)) {
		t.Error("another message is accepted, although no message was answered")
	}
	p.recordAnswer(storeAnswer{Reply: jsapi.Reply{Ack: jsapi.Ack{Stream: "S", Sequence: 1}}}, start.Add(time.Hour))
	if !p.accepts(start.Add(time.Hour)) || p.accepts(start.Add(time.Hour+parkTimeout)) {
		t.Error("want messages accepted for parkTimeout after an answer, and not longer")
	}
}
