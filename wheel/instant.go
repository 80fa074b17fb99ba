package wheel

import (
	"math"
	"time"
)

// An instant is the UnixNano of a time with the sign bit flipped. So instants compare as unsigned numbers, whose digits
// select the slots.
type instant uint64

const (
	epoch instant = 1 << 63 // 1970

	// maxSeconds is the number of whole seconds that UnixNano can represent before and after 1970.
	maxSeconds = math.MaxInt64 / int64(time.Second)

	firstInstant = epoch - instant(maxSeconds)*instant(time.Second)
	neverDue     = epoch + instant(maxSeconds)*instant(time.Second)
)

// instantOf returns the instant of t. For a time before firstInstant, it returns firstInstant-1. For a time that is
// maxSeconds or more after 1970, it returns neverDue.
func instantOf(t time.Time) instant {
	switch sec := t.Unix(); {
	case sec < -maxSeconds:
		return firstInstant - 1
	case sec >= maxSeconds:
		return neverDue
	}
	return instant(t.UnixNano()) ^ epoch
}

func (i instant) time() time.Time {
	return time.Unix(0, int64(i^epoch)).UTC()
}
