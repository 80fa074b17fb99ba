package wheel

import (
	"math"
	"time"
)

// An instant is a time in the wheel's representation: its UnixNano with the sign bit flipped. So instants compare as
// unsigned numbers, whose digits select the slots.
type instant uint64

const (
	epoch instant = 1 << 63 // 1970

	// reach is the number of whole seconds that UnixNano can represent on either side of 1970.
	reach = math.MaxInt64 / int64(time.Second)

	firstInstant = epoch - instant(reach)*instant(time.Second)
	never        = epoch + instant(reach)*instant(time.Second)
)

// instantOf returns the instant of t. For a time before firstInstant, it returns firstInstant-1. For a time that is
// reach seconds or more after 1970, it returns never.
func instantOf(t time.Time) instant {
	switch sec := t.Unix(); {
	case sec < -reach:
		return firstInstant - 1
	case sec >= reach:
		return never
	}
	return instant(t.UnixNano()) ^ epoch
}

func (i instant) time() time.Time {
	return time.Unix(0, int64(i^epoch)).UTC()
}
