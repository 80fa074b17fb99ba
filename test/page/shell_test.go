package page_test

import (
	"context"
	"encoding/json"
	"fmt"
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
		line := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`).ReplaceAllString(answer.Shell, "2026-12-24T18:00:00Z")
		got = append(got, regexp.MustCompile(`--generation \d+`).ReplaceAllString(line, "--generation 7"))
	}
	for _, path := range []string{
		"pending/ls",
		"pending/ls?target=orders.>&due_after=10m&due_before=1h&cursor=1795335793251509046/DELAY_1s-1-1795335793251509046",
		"where?id=DELAY_1s-1", "timers/ls",
		"timers/ls?target=orders.*&key=order-*&due_after=1m&due_before=3h&state=all&after=5",
		"timers/show?key=shown&target=orders.shown", "schedules/ls", "schedules/ls?target=reports.>&name=puls*",
		"schedules/show?name=pulse", "retrying", "retrying?target=shop.>", "dead/ls?by=code,target,reason",
		"dead/ls?by=letter&code=bad_time&target=orders.>&since=2h&find=x", "dead/show?id=1", "pauses",
	} {
		request("GET", "look/"+path, "")
	}
	for _, change := range []struct{ operation, item string }{
		{"timers cancel", `{"key":"shown","target":"orders.shown"}`},
		{"timers cancel", `{"key":"-h","target":"orders.shown"}`},
		{"timers fire", `{"key":"shown","target":"orders.shown"}`},
		{"timers move", `{"key":"shown","target":"orders.shown","by":"+5m"}`},
		{"timers move", `{"key":"shown","target":"orders.shown","in":"15m"}`},
		{"timers move", `{"key":"shown","target":"orders.shown","at":"2026-12-24T18:00:00Z"}`},
		{"schedules rm", `{"name":"pulse","target":"reports.pulse"}`},
		{"schedules fire", `{"name":"pulse","target":"reports.pulse"}`},
		{"schedules pause", `{"name":"pulse"}`},
		{"timers move", `{"key":"pulse","target":"reports.pulse","by":"+5m"}`},
		{"timers cancel", `{"all":true,"target":"orders.shown","key":"sh*","due_before":"3h"}`},
		{"timers cancel", `{"all":true,"target":"orders.shown","once":true}`},
		{"timers move", `{"all":true,"target":"orders.shown","by":"-5m"}`},
		{"dead resend", `{"id":1,"to":"x.y","now":true,"drop_expiry":true,"unsealed":true}`},
		// These letters are there from the start, and no case removes them.
		{"dead resend", `{"code":"bad_time","target":"hostile.>","since":"2h","now":true}`},
		{"dead rm", `{"id":[1,2]}`},
		{"pause", `{"pattern":"nobody.>"}`},
	} {
		body := fmt.Sprintf(`{"operation":%q,"items":[%s]}`, change.operation, change.item)
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
