package deadletter

import (
	"errors"
	"testing"
	"time"

	"delaybroker/broker/message"
)

var (
	names  = mustNames()
	policy = message.Policy{Names: names, Targets: []string{"orders.>"}}
	died   = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

func mustNames() message.Names {
	n, err := message.NewNames("delay")
	if err != nil {
		panic(err)
	}
	return n
}

// letter returns the letter of a message to orders.x that was accepted an hour before it died, and due half an hour
// before.
func letter(edit func(*Letter)) Letter {
	l := Letter{At: died, Letter: message.Letter{Code: message.Undelivered, Request: message.Request{
		ID: "DELAY_30m-1-1", Target: "orders.x", Accepted: died.Add(-time.Hour), Due: died.Add(-time.Hour / 2),
		Attempts: 20, FirstFailure: died.Add(-time.Minute), LastFailure: died,
	}}}
	edit(&l)
	return l
}

// marker changes the letter to the letter of a marker whose key is gone.
func marker(l *Letter) {
	l.Code, l.Target, l.Subject = message.BadInternal, message.MarkerTarget, names.Marker("30m")
	l.Unproven = message.Problemf(message.BadInternal, "its key is gone")
}

func TestAgain(t *testing.T) {
	later := died.Add(24 * time.Hour)
	for _, tt := range []struct {
		name   string
		edit   func(*Letter)
		change Change
		err    error
		target string
		due    time.Duration // after it died
	}{
		{name: "undelivered", edit: func(*Letter) {}, target: "orders.x", due: -time.Hour / 2},
		{name: "to another", edit: func(*Letter) {}, change: Change{Target: "orders.y"}, target: "orders.y",
			due: -time.Hour / 2},
		{name: "to a forbidden one", edit: func(*Letter) {}, change: Change{Target: "payments.y"}, err: ErrForbidden},
		{name: "forbidden since", edit: func(l *Letter) { l.Target = "payments.x" }, err: ErrForbidden},
		{name: "no target", edit: func(l *Letter) { l.Code, l.Target = message.BadTarget, "" }, err: ErrNoTarget},
		{name: "no target, but now", edit: func(l *Letter) { l.Code, l.Target = message.BadTarget, "" },
			change: Change{Target: "orders.y"}, target: "orders.y", due: -time.Hour / 2},
		{name: "not due yet", edit: func(l *Letter) { l.Due = died.Add(48 * time.Hour) }, target: "orders.x",
			due: 48 * time.Hour},
		{name: "not due yet, at once", edit: func(l *Letter) { l.Due = died.Add(48 * time.Hour) },
			change: Change{DeliverNow: true}, target: "orders.x"},
		{name: "not understood", edit: func(l *Letter) { l.Code, l.Due = message.BadTime, l.Accepted }, err: ErrNoTime},
		{name: "not understood, at once", edit: func(l *Letter) { l.Code, l.Due = message.BadTime, l.Accepted },
			change: Change{DeliverNow: true}, target: "orders.x", due: -time.Hour},
		{name: "expired", edit: func(l *Letter) { l.Code, l.Expires = message.Expired, died }, err: ErrExpired},
		{name: "expired since", edit: func(l *Letter) { l.Expires = later.Add(-1) }, err: ErrExpired},
		{name: "expires just now", edit: func(l *Letter) { l.Expires = later }, target: "orders.x", due: -time.Hour / 2},
		{name: "expired, dropped", edit: func(l *Letter) { l.Code, l.Expires = message.Expired, died },
			change: Change{DropExpiry: true}, target: "orders.x", due: -time.Hour / 2},
		{name: "a marker", edit: marker, change: Change{Unsealed: true, DeliverNow: true}, err: ErrMarker},
		{name: "a marker, to another target", edit: marker, change: Change{Unsealed: true, DeliverNow: true, Target: "orders.y"},
			err: ErrMarker},
		{name: "a message to a target of that name", edit: func(l *Letter) { marker(l); l.Size = 1 },
			change: Change{Unsealed: true, Target: "orders.y"}, target: "orders.y", due: -time.Hour / 2},
		{name: "of a newer broker", edit: func(l *Letter) { l.Problem = message.Problemf(message.NewerFormat, "2") },
			change: Change{DeliverNow: true}, err: ErrUnreadable},
	} {
		l := letter(tt.edit)
		again, err := l.Resent(policy, tt.change, later)
		if !errors.Is(err, tt.err) || (err != nil) != errors.Is(err, ErrNotResendable) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.err)
		}
		if err != nil {
			continue
		}
		if again.Target != tt.target || again.Due.Sub(died) != tt.due || again.ID != l.ID ||
			tt.change.DropExpiry && !again.Expires.IsZero() {
			t.Errorf("%s: got %+v, want it to %s, due %s after it died", tt.name, again, tt.target, tt.due)
		}
	}
	kept := letter(func(l *Letter) { l.Expires = later.Add(time.Hour) })
	if again, err := kept.Resent(policy, Change{DropExpiry: true}, later); err != nil ||
		!again.Expires.Equal(kept.Expires) {
		t.Errorf("an expiry that is ahead: got %v and %v, want it kept", again.Expires, err)
	}
}

// TestEveryCodeIsDecided: a new code must say whether its letters can be resent unchanged.
func TestEveryCodeIsDecided(t *testing.T) {
	understood := map[message.Code]bool{message.Undelivered: true, message.Expired: true, message.TooLarge: true,
		message.BadTarget: true}
	for _, c := range message.Codes() {
		if got := (message.Letter{Code: c}).DueKnown(); got != understood[c] {
			t.Errorf("%s: understood %v, want %v", c, got, understood[c])
		}
	}
	if len(message.Codes()) != 12 {
		t.Errorf("there are %d codes: decide whether a broker knew the time and target of a message with the new one",
			len(message.Codes()))
	}
}

// TestCutTime: if a dot cut a time in two, its second half is not a target.
func TestCutTime(t *testing.T) {
	open := message.Policy{Names: names} // without DELAY_TARGETS, which could exclude the second half
	for subject, want := range map[string]string{
		"delayin.1.5s.orders.x": "", "delayat.1732060800.123.orders.x": "", "delayin.soon.orders.x": "orders.x",
	} {
		r, problem := open.Parse(message.Incoming{Stream: "DELAY_INTAKE", Sequence: 1, At: died, Subject: subject})
		if problem == nil || problem.Code != message.BadTime {
			t.Fatalf("%s: got %v, want bad_time", subject, problem)
		}
		l, unread := names.ParseLetter(message.Incoming{Subject: names.Dead(problem.Code, r.Target),
			Header: r.DeadHeader(problem)})
		if unread != nil || l.Target != want || l.Subject != subject || l.Sentence != problem.Sentence {
			t.Errorf("%s: got %+v and %v, want the target %q", subject, l, unread, want)
		}
	}
}
