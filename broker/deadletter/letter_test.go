package deadletter

import (
	"errors"
	"testing"
	"time"

	"delaybroker/broker/message"
)

var (
	names     = mustNames()
	policy    = message.Policy{Names: names, Targets: []string{"orders.>"}}
	deathTime = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

func mustNames() message.Names {
	n, err := message.NewNames("delay")
	if err != nil {
		panic(err)
	}
	return n
}

// letter returns the letter of a message to orders.x. The message was accepted an hour before it became a dead letter,
// and was due half an hour before that time.
func letter(edit func(*Letter)) Letter {
	l := Letter{At: deathTime, Letter: message.Letter{Code: message.Undelivered, Request: message.Request{
		ID: "DELAY_30m-1-1", Target: "orders.x", Accepted: deathTime.Add(-time.Hour), Due: deathTime.Add(-time.Hour / 2),
		Attempts: 20, FirstFailure: deathTime.Add(-time.Minute), LastFailure: deathTime,
	}}}
	edit(&l)
	return l
}

// marker changes the letter to the letter of a marker whose seal has an unknown key.
func marker(l *Letter) {
	l.Code, l.Target, l.Subject = message.BadInternal, message.MarkerTarget, names.Marker("30m")
	l.Unproven = message.Problemf(message.BadInternal, "its key is gone")
}

func TestResent(t *testing.T) {
	now := deathTime.Add(24 * time.Hour)
	for _, tt := range []struct {
		name   string
		edit   func(*Letter)
		change Resend
		err    error
		target string
		due    time.Duration // after the message became a dead letter
	}{
		{name: "undelivered", edit: func(*Letter) {}, target: "orders.x", due: -time.Hour / 2},
		{name: "another target", edit: func(*Letter) {}, change: Resend{Target: "orders.y"}, target: "orders.y",
			due: -time.Hour / 2},
		{name: "a forbidden new target", edit: func(*Letter) {}, change: Resend{Target: "payments.y"}, err: ErrForbidden},
		{name: "a forbidden target", edit: func(l *Letter) { l.Target = "payments.x" }, err: ErrForbidden},
		{name: "no target", edit: func(l *Letter) { l.Code, l.Target = message.BadTarget, "" }, err: ErrNoTarget},
		{name: "no target, with a new one", edit: func(l *Letter) { l.Code, l.Target = message.BadTarget, "" },
			change: Resend{Target: "orders.y"}, target: "orders.y", due: -time.Hour / 2},
		{name: "not due yet", edit: func(l *Letter) { l.Due = deathTime.Add(48 * time.Hour) }, target: "orders.x",
			due: 48 * time.Hour},
		{name: "not due yet, deliver now", edit: func(l *Letter) { l.Due = deathTime.Add(48 * time.Hour) },
			change: Resend{DeliverNow: true}, target: "orders.x"},
		{name: "no due time", edit: func(l *Letter) { l.Code, l.Due = message.BadTime, l.Accepted }, err: ErrNoTime},
		{name: "no due time, deliver now", edit: func(l *Letter) { l.Code, l.Due = message.BadTime, l.Accepted },
			change: Resend{DeliverNow: true}, target: "orders.x", due: -time.Hour},
		{name: "expired", edit: func(l *Letter) { l.Code, l.Expires = message.Expired, deathTime }, err: ErrExpired},
		{name: "expired after its death", edit: func(l *Letter) { l.Expires = now.Add(-1) }, err: ErrExpired},
		{name: "expires just now", edit: func(l *Letter) { l.Expires = now }, target: "orders.x", due: -time.Hour / 2},
		{name: "expired, dropped", edit: func(l *Letter) { l.Code, l.Expires = message.Expired, deathTime },
			change: Resend{DropExpiry: true}, target: "orders.x", due: -time.Hour / 2},
		{name: "a marker", edit: marker, change: Resend{Unsealed: true, DeliverNow: true}, err: ErrMarker},
		{name: "a marker, to another target", edit: marker,
			change: Resend{Unsealed: true, DeliverNow: true, Target: "orders.y"}, err: ErrMarker},
		{name: "a message to a target with a marker's name", edit: func(l *Letter) { marker(l); l.Size = 1 },
			change: Resend{Unsealed: true, Target: "orders.y"}, target: "orders.y", due: -time.Hour / 2},
		{name: "of a newer broker", edit: func(l *Letter) { l.Problem = message.Problemf(message.NewerFormat, "2") },
			change: Resend{DeliverNow: true}, err: ErrUnreadable},
	} {
		l := letter(tt.edit)
		resent, err := l.resentMessage(policy, tt.change, now)
		if !errors.Is(err, tt.err) || (err != nil) != errors.Is(err, ErrNotResendable) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.err)
		}
		if err != nil {
			continue
		}
		if resent.Target != tt.target || resent.Due.Sub(deathTime) != tt.due || resent.ID != l.ID ||
			tt.change.DropExpiry && !resent.Expires.IsZero() {
			t.Errorf("%s: got %+v, want the target %s, due %s after the letter",
				tt.name, resent, tt.target, tt.due)
		}
	}
	rollup := message.Origin{Series: 7, Rollup: true}
	for name, tt := range map[string]struct {
		edit   func(*Letter)
		change Resend
		kept   bool
	}{
		"to its own target": {edit: func(*Letter) {}, kept: true},
		"to another target": {edit: func(*Letter) {}, change: Resend{Target: "orders.y"}},
		"of unknown writers": {
			edit:   func(l *Letter) { l.Unproven = message.Problemf(message.BadInternal, "") },
			change: Resend{Unsealed: true},
		},
	} {
		l := letter(tt.edit)
		l.Request = l.WithOrigin(rollup)
		resent, err := l.resentMessage(policy, tt.change, now)
		if o := resent.Origin(); err != nil || o.Series != 7 || o.Rollup != tt.kept {
			t.Errorf("a roll-up, %s: got %+v and %v, want the roll-up %t", name, o, err, tt.kept)
		}
	}
	unexpired := letter(func(l *Letter) { l.Expires = now.Add(time.Hour) })
	if resent, err := unexpired.resentMessage(policy, Resend{DropExpiry: true}, now); err != nil ||
		!resent.Expires.Equal(unexpired.Expires) {
		t.Errorf("an expiry in the future: got %v and %v, want %v", resent.Expires, err, unexpired.Expires)
	}
}

// TestDueKnown checks each code. A new code fails the test, so that the author of the code decides about DueKnown.
func TestDueKnown(t *testing.T) {
	known := map[message.Code]bool{message.Undelivered: true, message.Expired: true, message.TooLarge: true,
		message.BadTarget: true}
	for _, c := range message.Codes() {
		if got := (message.Letter{Code: c}).DueKnown(); got != known[c] {
			t.Errorf("%s: due known: %v, want %v", c, got, known[c])
		}
	}
	if n := len(message.Codes()); n != 12 {
		t.Errorf("there are %d codes, want 12: decide whether the due time of a letter with the new code is known", n)
	}
}

// TestCutTime: the second half of a time with a dot is not the target.
func TestCutTime(t *testing.T) {
	policy := message.Policy{Names: names} // without DELAY_TARGETS, which could exclude the second half
	for subject, want := range map[string]string{
		"delayin.1.5s.orders.x": "", "delayat.1732060800.123.orders.x": "", "delayin.soon.orders.x": "orders.x",
	} {
		r, problem := policy.Parse(message.Incoming{Stream: "DELAY_INTAKE", Sequence: 1, At: deathTime, Subject: subject})
		if problem == nil || problem.Code != message.BadTime {
			t.Fatalf("%s: got %v, want bad_time", subject, problem)
		}
		l, unreadable := names.ParseLetter(message.Incoming{Subject: names.Dead(problem.Code, r.Target),
			Header: r.DeadHeader(problem)})
		if unreadable != nil || l.Target != want || l.Subject != subject || l.Sentence != problem.Sentence {
			t.Errorf("%s: got %+v and %v, want the target %q", subject, l, unreadable, want)
		}
	}
}
