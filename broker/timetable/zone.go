package timetable

import (
	"math"
	"path"
	"strings"
	"sync"
	"time"
)

// zones keeps the zones that were loaded: time.LoadLocation reads a file each time. There are some six hundred.
var zones sync.Map // name → *time.Location

// loadZone returns a zone by its name. The name comes from anybody: the zone of this machine is none, and neither is
// another way to its file, as in Europe/./Berlin: there is no end of those, and each that is kept takes memory.
func loadZone(name string) (*time.Location, *Error) {
	if name == "" {
		return time.UTC, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if strings.EqualFold(name, "Local") || len(name) > 64 || path.Clean(name) != name {
		return nil, noZone(name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, noZone(name)
	}
	zones.Store(name, z)
	return z, nil
}

func noZone(name string) *Error {
	return errorf("zone", "there is no zone %s: want a name of the IANA database, as in Europe/Berlin", excerpt(name))
}

// wall is what the clock on the wall of a zone shows, in seconds, as if it were UTC.
type wall int64

func wallOf(unix int64, zone *time.Location) wall {
	_, offset := time.Unix(unix, 0).In(zone).Zone()
	return wall(unix + int64(offset))
}

// change is the next change of a zone's clock after a moment, or an earlier moment from which to look on; far is what
// is returned where there is none. On the last day of a leap year, time.Time.ZoneBounds gives one that has passed.
func change(unix int64, zone *time.Location) int64 {
	_, end := time.Unix(unix, 0).In(zone).ZoneBounds()
	switch {
	case end.IsZero():
		return far
	case end.Unix() <= unix:
		return unix + 60*60
	}
	return end.Unix()
}

// highest is the latest that the clock has shown until a moment: more than it shows, while an hour comes again.
func highest(unix int64, zone *time.Location) wall {
	most := wallOf(unix, zone)
	for at := unix - mostShift; at < unix; at = change(at, zone) {
		if end := min(unix, change(at, zone)-1); end > at {
			most = max(most, wallOf(end, zone))
		}
	}
	return most
}

// reached is the first moment at which the clock shows a time, or a later one.
func reached(w wall, zone *time.Location) int64 {
	for at := int64(w) - mostShift; ; {
		end := change(at, zone)
		if unix := at + max(0, int64(w-wallOf(at, zone))); unix < end {
			return unix
		}
		at = end
	}
}

// mostShift is more than the clock of any zone has been off UTC, and more than one has ever been changed by, in
// seconds.
const mostShift = 26 * 60 * 60

const far = math.MaxInt64
