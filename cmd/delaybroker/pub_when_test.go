package main

import (
	"errors"
	"testing"

	"delaybroker/broker/message"
)

func TestWhenSubject(t *testing.T) {
	names, err := message.NewNames("later")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		when deliveryTime
		want string
	}{
		{deliveryTime{level: "30m"}, "later.30m.a.b"},
		{deliveryTime{in: "30m"}, "later.30m.a.b"},
		{deliveryTime{in: "17m"}, "later.17m.a.b"},
		{deliveryTime{in: "0s"}, "later.0s.a.b"},
		{deliveryTime{in: "7777s"}, "laterin.7777s.a.b"},
		{deliveryTime{in: "1h30m"}, "laterin.1h30m.a.b"},
		{deliveryTime{at: "2026-12-24T19:00:00+01:00"}, "laterat.2026-12-24T18:00:00Z.a.b"},
		{deliveryTime{at: "2026-12-24T18:00:00.000Z"}, "laterat.2026-12-24T18:00:00Z.a.b"},
		{deliveryTime{at: "2026-12-24T18:00:00.250Z"}, "laterat.1798135200250.a.b"},
		{deliveryTime{at: "2026-12-24T18:00:00.250000001Z"}, "laterat.1798135200251.a.b"},
		{deliveryTime{at: "2026-12-24T18:00:00.999999999Z"}, "laterat.2026-12-24T18:00:01Z.a.b"},
		{deliveryTime{at: "1970-01-01T00:00:01.500Z"}, "laterat.1970-01-01T00:00:02Z.a.b"}, // 1500 would be parsed as seconds
	} {
		got, err := test.when.subject(names, "a.b")
		if err != nil || got != test.want {
			t.Errorf("%+v: got %q and %v, want %q", test.when, got, err, test.want)
		}
	}
	for _, bad := range []deliveryTime{{in: "1.5s"}, {in: "soon"}, {at: "tomorrow"}, {at: "2026-12-24T18:00:00"}} {
		if got, err := bad.subject(names, "a.b"); !errors.Is(err, errUsage) {
			t.Errorf("%+v: got %q and %v, want a usage error", bad, got, err)
		}
	}
}
