package page_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"delaybroker/test/natstest"
)

// shellCommands: for a view or a plan, the page shows the shell command that does the same. These commands are the
// lines of testdata/lines.txt. TestPageCommandsExist checks that the command delaybroker accepts them.
func shellCommands(t *testing.T, _ context.Context, c *scene) {
	c.timer("shown", "orders.shown", "2h")
	c.timer("-h", "orders.shown", "2h")
	var got []string
	request := func(method, path, body string) {
		var answer struct{ Shell, Error string }
		c.call(t, method, path, body, &answer)
		if answer.Error != "" {
			t.Errorf("%s %s: %s", path, body, answer.Error)
			return
		}
		line := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllString(answer.Shell, "2026-12-24T18:00:00Z")
		got = append(got, regexp.MustCompile(`--generation \d+`).ReplaceAllString(line, "--generation 7"))
	}
	for _, path := range []string{
		"pending",
		"pending?target=orders.>&due_after=10m&due_before=1h&cursor=1795335793251509046/DELAY_1s-1-1795335793251509046",
		"where?id=DELAY_1s-1", "timers", "timers?kind=all",
		"timers?target=orders.*&key=order-*&due_after=1m&due_before=3h&state=all&after=5",
		"timer?key=shown&target=orders.shown", "schedules", "schedules?target=reports.>&key=puls*",
		"retrying", "retrying?target=shop.>", "dead", "dead?target=shop.>", "letters",
		"letters?code=bad_time&target=orders.>&since=2h", "letter?number=1", "targets", "dead?by=target",
	} {
		request("GET", path, "")
	}
	for _, body := range []string{
		`{"verb":"cancel","key":"shown","target":"orders.shown"}`,
		`{"verb":"cancel","key":"-h","target":"orders.shown"}`,
		`{"verb":"fire","key":"shown","target":"orders.shown"}`,
		`{"verb":"move","key":"shown","target":"orders.shown","by":"+5m"}`,
		`{"verb":"move","key":"shown","target":"orders.shown","in":"15m"}`,
		`{"verb":"move","key":"shown","target":"orders.shown","at":"2026-12-24T18:00:00Z"}`,
		`{"verb":"cancel","key":"pulse","target":"reports.pulse"}`,
		`{"verb":"fire","key":"pulse","target":"reports.pulse"}`,
		`{"verb":"pause","key":"pulse","target":"reports.pulse"}`,
		`{"verb":"resume","key":"pulse","target":"reports.pulse"}`,
		`{"verb":"move","key":"pulse","target":"reports.pulse","by":"+5m"}`,
		`{"verb":"cancel","all":true,"target":"orders.shown","key":"sh*","due_before":"3h"}`,
		`{"verb":"cancel","all":true,"target":"orders.shown","once":true}`,
		`{"verb":"move","all":true,"target":"orders.shown","by":"-5m"}`,
		`{"verb":"resend","number":1,"to":"x.y","now":true,"drop_expiry":true,"unsealed":true}`,
		`{"verb":"resend","code":"bad_time","target":"orders.>","since":"2h"}`,
		`{"verb":"remove","code":"bad_time","target":"orders.>"}`,
		`{"verb":"remove","numbers":[1,2]}`,
		`{"verb":"pause","target":"nobody.>"}`, `{"verb":"resume","target":"nobody.>"}`,
	} {
		request("POST", "plan", body)
	}
	const file = "../../broker/web/page/testdata/lines.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	if want := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, want) {
		t.Errorf("%s is not equal to the commands of the page:\n%s", file, strings.Join(got, "\n"))
	}
}

// call sends a request with the token, and decodes the response.
func (c *scene) call(t *testing.T, method, path, body string, into any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.url+"api/"+path, strings.NewReader(body))
	natstest.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	natstest.NoError(t, err)
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}
