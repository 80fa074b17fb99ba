package leader

import "time"

// Time is a time by the clock of a stream's leader. The zero value means no time.
type Time struct{ stamp time.Time }

// At returns the Time for a timestamp of a leader, or for a time that was computed from such a timestamp.
func At(stamp time.Time) Time { return Time{stamp} }

func (t Time) Add(d time.Duration) Time      { return Time{t.stamp.Add(d)} }
func (t Time) Sub(other Time) time.Duration  { return t.stamp.Sub(other.stamp) }
func (t Time) Before(other Time) bool        { return t.stamp.Before(other.stamp) }
func (t Time) After(other Time) bool         { return t.stamp.After(other.stamp) }
func (t Time) Truncate(d time.Duration) Time { return Time{t.stamp.Truncate(d)} }
func (t Time) IsZero() bool                  { return t.stamp.IsZero() }
func (t Time) String() string                { return t.stamp.String() }

// Stamp returns the time as a time.Time, for headers and for output. The caller must not compare it with the local
// clock.
func (t Time) Stamp() time.Time { return t.stamp }
