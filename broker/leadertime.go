package broker

import "time"

// leaderTime is a time by the clock of the leader of a lane's stream. That clock stamps all messages that are stored.
// So the times at which a message was stored, is due, and leaves its lane are leader times. Our own clock is another
// clock, and its times are of type time.Time: the compiler keeps the two apart. Only [clock] knows how far
// the two are apart; elsewhere, a wait is carried over as a duration. The leaders of two streams are taken to have the
// same time: see the package comment.
type leaderTime struct{ stamp time.Time }

// byLeader is a time that a leader has stamped, or that was made from such a stamp.
func byLeader(stamp time.Time) leaderTime { return leaderTime{stamp} }

func (t leaderTime) Add(d time.Duration) leaderTime      { return leaderTime{t.stamp.Add(d)} }
func (t leaderTime) Sub(other leaderTime) time.Duration  { return t.stamp.Sub(other.stamp) }
func (t leaderTime) Before(other leaderTime) bool        { return t.stamp.Before(other.stamp) }
func (t leaderTime) After(other leaderTime) bool         { return t.stamp.After(other.stamp) }
func (t leaderTime) Truncate(d time.Duration) leaderTime { return leaderTime{t.stamp.Truncate(d)} }
func (t leaderTime) IsZero() bool                        { return t.stamp.IsZero() }
func (t leaderTime) UnixNano() int64                     { return t.stamp.UnixNano() }
func (t leaderTime) String() string                      { return t.stamp.String() }
