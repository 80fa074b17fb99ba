package pause

import (
	"fmt"
	"strings"
	"time"

	"delaybroker/broker/timer/timetable"
)

// Hours are quiet hours: the times of a day at which a pause stops its targets. The zero Hours has none. Clock changes
// behave as for a cron of package timetable: both ends of the hours are the times of a daily cron.
type Hours struct {
	daily string // such as 22:00-08:00
	zone  string // such as Europe/Berlin; empty for UTC
	days  string // the days on which the hours begin, as in a cron; empty for every day

	begin, end timetable.Table
}

// longestHours is more than the longest time between the beginning and the end of quiet hours: a day on which the clock
// is set back.
const longestHours = 49 * time.Hour

// ParseHours parses quiet hours. An end that is not later than the beginning is on the next day.
func ParseHours(daily, zone, days string) (Hours, error) {
	h := Hours{daily: daily, zone: zone, days: days}
	from, to, ok := strings.Cut(daily, "-")
	begin, beginErr := parseTimeOfDay(from)
	end, endErr := parseTimeOfDay(to)
	switch {
	case strings.ContainsAny(zone+days, " \t"):
		return Hours{}, fmt.Errorf("quiet hours: the zone %.64q and the days %.64q must not have spaces", zone, days)
	case !ok || beginErr != nil || endErr != nil || begin == minutesOfDay:
		return Hours{}, fmt.Errorf("quiet hours %.64q: want two times of the day, as in 22:00-08:00", daily)
	case begin == end:
		return Hours{}, fmt.Errorf("quiet hours %.64q: the two times are equal; for whole days, write 00:00-24:00", daily)
	}
	if days == "" {
		days = "*"
	}
	var err error
	if h.begin, err = dailyTable(begin, zone, days); err == nil {
		h.end, err = dailyTable(end%minutesOfDay, zone, "*")
	}
	if err != nil {
		return Hours{}, fmt.Errorf("quiet hours: %w", err)
	}
	return h, nil
}

const minutesOfDay = 24 * 60

// parseTimeOfDay parses a time such as 08:30, or 24:00, into minutes.
func parseTimeOfDay(s string) (minutes int, err error) {
	if s == "24:00" {
		return minutesOfDay, nil
	}
	t, err := time.Parse("15:04", s)
	return 60*t.Hour() + t.Minute(), err
}

func dailyTable(minutes int, zone, days string) (timetable.Table, error) {
	return timetable.Parse(timetable.Settings{
		Cron: fmt.Sprintf("%d %d * * %s", minutes%60, minutes/60, days), Zone: zone,
	})
}

// IsZero reports whether there are no quiet hours.
func (h Hours) IsZero() bool { return h.daily == "" }

// contains reports whether a time is in the quiet hours. Until is the end of these hours or, outside of them, the next
// beginning; it is zero if there are no quiet hours.
func (h Hours) contains(now time.Time) (quiet bool, until time.Time) {
	if h.IsZero() {
		return false, time.Time{}
	}
	for at := now.Add(-longestHours); ; {
		begin, ok := h.begin.Start(at, time.Time{})
		if !ok || begin.After(now) {
			return false, begin
		}
		if end, ok := h.end.Start(begin, time.Time{}); ok && end.After(now) {
			return true, end
		}
		at = begin
	}
}

// String returns the hours as in the record, such as "22:00-08:00 tz=Europe/Berlin days=mon-fri", or "".
func (h Hours) String() string {
	s := h.daily
	if h.zone != "" {
		s += " tz=" + h.zone
	}
	if h.days != "" {
		s += " days=" + h.days
	}
	return s
}

// MarshalText writes the hours for the record and for people.
func (h Hours) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText has written, and checks it.
func (h *Hours) UnmarshalText(data []byte) error {
	daily, rest, _ := strings.Cut(string(data), " ")
	var zone, days string
	for word := range strings.FieldsSeq(rest) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "tz":
			zone = value
		case "days":
			days = value
		default:
			return fmt.Errorf("quiet hours %.64q: unknown word %.64q", data, word)
		}
	}
	parsed, err := ParseHours(daily, zone, days)
	*h = parsed
	return err
}
