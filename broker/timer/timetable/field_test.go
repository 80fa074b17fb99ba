package timetable

import (
	"strings"
	"testing"
	"time"
)

// FuzzFromServer: an expression in the server's grammar is a table, or has no occurrence. The translation keeps the
// values of each field.
func FuzzFromServer(f *testing.F) {
	for _, expr := range []string{
		"* * * * * *", "5/20 1-59/7 ? 1,2,31 jan-DEC sun", "0 0 0 30 2 *", "@hourly", "+1 * * * * *", "1--2 * * * * *",
		"0 0 0 * * 6-6/2", "01 02 03 04 05 06", "*-5 * * * * *", "*/9999999999999999999 * * * * *",
	} {
		f.Add(expr)
	}
	now := at("2026-11-20T10:00:00Z")
	f.Fuzz(func(t *testing.T, pattern string) {
		expr, err := FromServer(pattern)
		if err != nil {
			return
		}
		again, err := FromServer(expr)
		if err != nil || again != expr {
			t.Errorf("%q is translated to %q, and that to %q, %v", pattern, expr, again, err)
		}
		table, err := Parse(Settings{Cron: expr})
		if err != nil {
			if !strings.Contains(err.Error(), "never matches") && len(expr) < 256 {
				t.Errorf("%q is translated to %q: %v", pattern, expr, err)
			}
			return
		}
		if next, ok := table.Start(now, time.Time{}); !ok || !next.After(now) {
			t.Errorf("the next occurrence of %q is %s, %t", pattern, next, ok)
		}
	})
}

// TestFromServer: an expression in the server's grammar has six fields. The result has the same meaning for any parser.
func TestFromServer(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"@yearly":                          "0 0 0 1 1 *",
		"@annually":                        "0 0 0 1 1 *",
		"@monthly":                         "0 0 0 1 * *",
		"@weekly":                          "0 0 0 * * 0",
		"@daily":                           "0 0 0 * * *",
		"@midnight":                        "0 0 0 * * *",
		"@hourly":                          "0 0 * * * *",
		"*/2 * * * * *":                    "0-58/2 * * * * *",
		"5/20 0,1,2 */1 ? JAN-mar sat,sun": "5-45/20 0-2 * * 1-3 0,6",
		"*,5 1-31/10 0-23 1-31 * 6-6/2":    "* 1-31/10 0-23 1-31 * 6",
		"59 1,2,4,5,7 9 5/30 12 0":         "59 1,2,4,5,7 9 5 12 0",
		"*/99 0 0 * * *":                   "0 0 0 * * *",
		"1/9223372036854775807 0 0 * * *":  "1 0 0 * * *",
		"* * * * *":                        "", "* * * * * * *": "", "60 * * * * *": "", "* * * 0 * *": "", "* * * * * 7": "",
		"@every 1h": "", "L * * * * *": "", "1-2-3 * * * * *": "", "1/2/3 * * * * *": "", "*/0 * * * * *": "", ",,": "",
		"* * * * ja *": "", "* * * * anf *": "", "* * * * janf *": "", "* * * *  *": "", "* * * * feb-jan *": "",
		"* * * L * *": "", "* * * * * 5#2": "",
	} {
		if got, err := FromServer(pattern); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is translated to %q, %v, want %q", pattern, got, err, want)
		}
	}
}
