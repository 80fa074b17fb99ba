package levels

import "strconv"

// plainRuns are the plain durations that users write without knowing the levels: small numbers of each unit, and some
// long times in a short unit (900s, 720m, 168h).
var plainRuns = []struct {
	unit              string
	first, last, step int
}{
	{"ms", 10, 990, 10},
	{"ms", 1000, 5000, 500},
	{"ms", 10_000, 60_000, 10_000},

	{"s", 0, 300, 1}, // 0s is included: a program may write it when no time remains
	{"s", 360, 900, 60},
	{"s", 1200, 3600, 600},
	{"s", 7200, 21_600, 3600},
	{"s", 43_200, 86_400, 43_200},

	{"m", 1, 300, 1},
	{"m", 360, 1440, 120},

	{"h", 1, 100, 1},
	{"h", 120, 720, 24},

	{"d", 1, 366, 1},
	{"w", 1, 52, 1},
}

// PlainDurations returns the plain durations that the intake accepts like levels. So a subject such as
// delay.15m.orders.expire has a stream for any set of levels, and an operator may change the levels. The order is
// always the same, and no spelling comes twice. Some of the durations are also names of levels. The caller must leave
// these out, because two streams cannot have the same subject.
//
// The intake needs a list because a JetStream subject has no wildcard for a part of a token: delay.*.> would include
// the subjects of the levels, and delay.*m.> would match nothing. The price is a stream with about 1,300 subjects. Any
// other duration can be written as delayin.<duration>.
func PlainDurations() []string {
	var names []string
	for _, run := range plainRuns {
		for n := run.first; n <= run.last; n += run.step {
			names = append(names, strconv.Itoa(n)+run.unit)
		}
	}
	return names
}
