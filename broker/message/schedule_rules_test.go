package message_test

import (
	"testing"

	"delaybroker/broker/message"
)

// TestTenantOfSchedule: schedules of different tenants have different tenants, however the rules are written. A tenant
// cannot appear as many if a rule names its targets.
func TestTenantOfSchedule(t *testing.T) {
	for setting, want := range map[string]map[string]string{
		"schedules.>=att.>,schedules.>=vic.>":             {"schedules.att.x": "att", "schedules.vic.x.y": "vic"},
		"schedules.>=>":                                   {"schedules.att.x": "att", "schedules.att": "att"},
		"schedules.*.daily=>":                             {"schedules.att.daily": "att"},
		"app.schedules.>=>":                               {"app.schedules.att.x": "att"},
		"schedules.att.>=att.>,schedules.vic.>=vic.>":     {"schedules.att.1": "att", "schedules.vic.1": "vic"},
		"schedules.att.>=att.a.>,schedules.att.>=att.b.>": {"schedules.att.1": "att", "schedules.att.2": "att"},
		"schedules.nightly=att.x":                         {"schedules.nightly": "att"},
		"schedules.nightly=>":                             {"schedules.nightly": "nightly"},
		"":                                                {"schedules.att.x": "schedules"},
	} {
		rules := message.ParseScheduleRules(setting, nil)
		for subject, want := range want {
			if got := rules.Tenant(subject); got != want {
				t.Errorf("DELAY_SCHEDULES=%s: the tenant of %s is %q, want %q", setting, subject, got, want)
			}
		}
	}
}
