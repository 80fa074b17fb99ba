package timetable

import (
	"math"
	"path"
	"strings"
	"sync"
	"time"
)

// zones caches the loaded zones, at most some six hundred: each call of time.LoadLocation reads a file.
var zones sync.Map // name → *time.Location

// loadZone returns a zone by its name, which is untrusted. It refuses Local, the zone of this machine. It also refuses
// other paths of a zone's file, such as Europe/./Berlin: their number is unlimited, and the cache would keep each.
func loadZone(name string) (*time.Location, *Error) {
	if name == "" {
		return time.UTC, nil
	}
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	if !strings.EqualFold(name, "Local") && len(name) <= 64 && path.Clean(name) == name {
		if z, err := time.LoadLocation(name); err == nil {
			zones.Store(name, z)
			return z, nil
		}
	}
	return nil, errorf("zone", "there is no zone %.64q: want a name of the IANA database, such as Europe/Berlin", name)
}

// wall is a local time of a zone, represented as the Unix time at which a clock in UTC shows the same time.
type wall int64

func wallOf(unix int64, zone *time.Location) wall {
	_, offset := time.Unix(unix, 0).In(zone).Zone()
	return wall(unix + int64(offset))
}

// nextChange returns the next change of a zone's clock after the moment unix. It returns endOfTime if there is none. On
// the last day of a leap year, time.Time.ZoneBounds may return an end that has passed. Then nextChange returns the
// moment one hour after unix, from which the callers continue.
func nextChange(unix int64, zone *time.Location) int64 {
	_, end := time.Unix(unix, 0).In(zone).ZoneBounds()
	switch {
	case end.IsZero():
		return endOfTime
	case end.Unix() <= unix:
		return unix + 60*60
	}
	return end.Unix()
}

// latestWall returns the latest local time that the clock has shown up to the moment unix. While an hour repeats, this
// time is later than the present local time.
func latestWall(unix int64, zone *time.Location) wall {
	latest := wallOf(unix, zone)
	for at := unix - maxShift; at < unix; at = nextChange(at, zone) {
		if end := min(unix, nextChange(at, zone)-1); end > at {
			latest = max(latest, wallOf(end, zone))
		}
	}
	return latest
}

// firstMoment returns the first moment at which the local clock shows w or a later time.
func firstMoment(w wall, zone *time.Location) int64 {
	for at := int64(w) - maxShift; ; {
		end := nextChange(at, zone)
		if unix := at + max(0, int64(w-wallOf(at, zone))); unix < end {
			return unix
		}
		at = end
	}
}

// maxShift is longer than every UTC offset and every clock change of any zone, in seconds.
const maxShift = 26 * 60 * 60

const endOfTime = math.MaxInt64 // a Unix time later than every change
