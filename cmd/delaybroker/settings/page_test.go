package settings

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"delaybroker/broker/web/page"
)

const pageToken = "0123456789abcdef0123"

// By default, everybody may see rows on a loopback address. On another address, only viewers with a token may.
func TestOpenRows(t *testing.T) {
	for _, test := range []struct {
		address, rows, token string
		want                 bool
	}{
		{"127.0.0.1:8422", "", "", true},
		{"localhost:8422", "", "", true},
		{"[::1]:8422", "", "", true},
		{":8422", "", "", false},
		{"0.0.0.0:8422", "", pageToken, false},
		{"10.0.0.1:8422", "", "", false},
		{":8422", "open", "", true},
		{"127.0.0.1:8422", "token", pageToken, false},
	} {
		setEnv(t, "DELAY_HTTP_ADDR", test.address, "DELAY_HTTP_ROWS", test.rows, "DELAY_HTTP_TOKEN", test.token)
		if got := mustRead(t).Page.OpenRows; got != test.want {
			t.Errorf("%+v: got open rows %v", test, got)
		}
	}
}

func TestPageTokens(t *testing.T) {
	setEnv(t, "DELAY_HTTP_ACTIONS", "on", "DELAY_HTTP_TOKEN", "ann:"+pageToken+","+pageToken+"b")
	want := []page.Token{{Name: "ann", Secret: pageToken}, {Name: "token-2", Secret: pageToken + "b"}}
	if got := mustRead(t).Page.Tokens; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, test := range []struct{ name, value, problem, want string }{
		{"DELAY_HTTP_ACTIONS", "on", "DELAY_HTTP_ACTIONS", "set DELAY_HTTP_TOKEN too"},
		{"DELAY_HTTP_ROWS", "token", "DELAY_HTTP_ROWS", "nobody could see the rows"},
		{"DELAY_HTTP_TOKEN", "ann:secret", "DELAY_HTTP_TOKEN", "has 6 bytes, want at least 16"},
		{"DELAY_HTTP_TOKEN", ":" + pageToken, "DELAY_HTTP_TOKEN", "want a name"},
		{"DELAY_HTTP_TOKEN", pageToken + "," + pageToken, "DELAY_HTTP_TOKEN", "given twice"},
		{"DELAY_HTTP_TOKEN", pageToken + "é", "DELAY_HTTP_TOKEN", "printable ASCII"},
	} {
		setEnv(t, test.name, test.value)
		wantOneProblem(t, test.problem, test.want)
		if all := fmt.Sprint(problemsOf(t)); strings.Contains(all, "secret") || strings.Contains(all, pageToken) {
			t.Errorf("%s shows the token", all)
		}
	}
}
