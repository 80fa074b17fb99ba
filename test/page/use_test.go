package page_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// actOnSelection selects two of three timers by keyboard, and cancels both with one action.
func actOnSelection(t *testing.T, browser context.Context, c *scene) {
	for _, key := range []string{"pick-1", "pick-2", "pick-3"} {
		c.timer(key, "orders.picked", "2h")
	}
	b := open(t, browser, c.url, "#/timers?key=pick-*", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 3`)
	for _, key := range []string{"pick-1", "pick-3"} {
		b.tabTo(fmt.Sprintf(`input[aria-label="Select %s"]`, key))
		b.run(chromedp.KeyEvent(" "))
	}
	b.until(`document.querySelector(".bulk b")?.textContent === "2 rows selected"`)
	b.press("main .bulk", "Cancel")
	b.until(`document.querySelector("dialog h2")?.textContent === "Cancel 2 timers?"`)
	if lines := value[string](b, `document.querySelector("dialog code").textContent`); strings.Count(lines, "\n") != 1 ||
		!strings.HasSuffix(lines, " pick-3 orders.picked") {
		t.Errorf("got the commands %q, want one for each selected timer", lines)
	}
	b.press("dialog", "Cancel 2 timers")
	b.until(`document.querySelector("#done")?.textContent === "2 of 2 timers cancelled"`)
	b.press("dialog", "Done")
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	if key := value[string](b, `document.querySelector("tbody a").textContent`); key != "pick-2" {
		t.Errorf("the remaining timer is %s, want pick-2", key)
	}
	b.until(`!document.querySelector(".bulk")`)
}

// sortRows sorts the rows by keyboard, first ascending, then descending.
func sortRows(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers?key=order-*&target=orders.remind", 1280, 900, "light")
	b.until(`document.querySelectorAll("tbody tr").length >= 29`)
	first := func() string { return value[string](b, `document.querySelector("tbody a").textContent`) }
	b.tabTo(`th button.sort`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("th").getAttribute("aria-sort") === "ascending"`)
	if got := first(); got != "order-0" {
		t.Errorf("ascending: the first key is %s, want order-0", got)
	}
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("th").getAttribute("aria-sort") === "descending"`)
	if got := first(); got != "order-29" {
		t.Errorf("descending: the first key is %s, want order-29", got)
	}
}

// timeZone: the page shows a time in the browser's zone, or in UTC if the viewer chooses UTC. A reload keeps the
// choice.
func timeZone(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timer?key=order-5&target=orders.remind", 1280, 900, "light")
	b.run(emulation.SetTimezoneOverride("America/Bogota"), chromedp.Reload())
	b.until(`document.querySelector("dl time")`)
	due := func() string { return value[string](b, `document.querySelector("dl time").textContent`) }
	if got := due(); !strings.Contains(got, " -05:00 (in ") {
		t.Errorf("in Bogota, got the due time %s, want the offset -05:00", got)
	}
	b.press("header", "UTC")
	b.until(`document.querySelector("dl time").textContent.includes(" UTC (in ")`)
	iso := value[string](b, `document.querySelector("dl time").getAttribute("datetime").slice(0, 19).replace("T", " ")`)
	if got := due(); !strings.HasPrefix(got, iso) {
		t.Errorf("in UTC, got the due time %s, want %s", got, iso)
	}
	b.run(chromedp.Reload())
	b.until(`document.querySelector("dl time")?.textContent.includes(" UTC (in ")`)
}

// relativeTimes: relative times change as time passes. The button Update resets the displayed age of the rows.
func relativeTimes(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers?key=order-8", 1280, 900, "light")
	b.until(`document.querySelector("tbody time")`)
	before := value[string](b, `document.querySelector("tbody time").textContent`)
	b.until(fmt.Sprintf(`document.querySelector("tbody time").textContent !== %q`, before))
	b.until(`/^updated [1-9]\d*s ago$/.test(document.querySelector(".age span").textContent)`)
	b.press("main .age", "Update")
	b.until(`document.querySelector(".age span").textContent === "updated now"`)
}

// lostConnection: if the broker does not answer, the numbers get another colour, and the page names the other instance.
func lostConnection(t *testing.T, browser context.Context, c *scene) {
	proxy := c.startProxy(t, "")
	b := open(t, browser, proxy.URL+"/", "#/", 1280, 900, "light")
	color := func() string { return value[string](b, `getComputedStyle(document.querySelector("#n-pending")).color`) }
	b.until(`/\d/.test(document.querySelector("#n-pending").textContent)`)
	b.until(`/ instances$/.test(document.querySelector("#version").textContent)`) // the other instance has answered
	fresh := color()
	b.allowRefusals()
	proxy.CloseClientConnections()
	proxy.Close()
	b.until(`document.querySelector("#ready").textContent.startsWith("no news since ")`)
	b.until(`/has not answered since .* Other instances: east-/.test(document.querySelector("#trouble").textContent)`)
	if color() == fresh {
		t.Errorf("the numbers still have the colour %s", fresh)
	}
}

// findings: the overview has the findings of package doctor. A finding has a link to the view of its object.
func findings(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "dark")
	b.until(`[...document.querySelectorAll("#attention li")]
		.some((li) => /dead letters: \d+ in DELAY_DEAD/.test(li.textContent))`)
	b.click(`[...document.querySelectorAll("#attention a")].find((a) => a.textContent === "dead letters")`)
	b.until(`location.hash === "#/dead" && document.querySelector("tbody tr")`)
}

// openMinute chooses a minute in the forecast by arrow keys, and opens the messages that are due in this minute.
func openMinute(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "light")
	b.until(`document.querySelectorAll("figure canvas").length === 4`)
	b.tabTo(`.plot.opens`)
	for range 12 {
		b.run(chromedp.KeyEvent(kb.ArrowRight))
	}
	b.until(`/\d\d:\d\d(:00)?, messages \d/.test(document.querySelector(".plot.opens").getAttribute("aria-valuetext"))`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelectorAll("tbody tr").length > 10`)
	outside := value[string](b, `(() => {
		const params = new URLSearchParams(location.hash.split("?")[1]);
		const [from, to] = [new Date(params.get("due_after")), new Date(params.get("due_before"))];
		return [...document.querySelectorAll("tbody time")].map((n) => new Date(n.getAttribute("datetime")))
			.filter((at) => !(at >= from && at < to)).concat(to - from === 60000 ? [] : ["not a minute"]).join(" ");
	})()`)
	if outside != "" {
		t.Errorf("these messages are not due in the minute: %s", outside)
	}
}

// searchFromEveryView: the search finds a message by its Delay-Id, Nats-Msg-Id or target, and a timer by its key. Each
// search begins in another view.
func searchFromEveryView(t *testing.T, browser context.Context, c *scene) {
	c.publish("delay.2h.orders.found", "{}", nats.Header{"Nats-Msg-Id": {"my-own-id"}})
	c.timer("my-own-key", "orders.keyed", "2h")
	b := open(t, browser, c.url, "#/lanes", 1280, 900, "light")
	search := func(text, view, want string) {
		t.Helper()
		b.view(view)
		b.until(`document.querySelector("main h1")`)
		b.run(chromedp.Evaluate(`document.activeElement.blur(), document.querySelector("#find").reset()`, nil))
		b.run(input.DispatchKeyEvent(input.KeyRawDown).WithKey("/"), input.DispatchKeyEvent(input.KeyUp).WithKey("/"))
		b.until(`document.activeElement.matches("#find input")`)
		b.run(chromedp.KeyEvent(text), chromedp.KeyEvent("\r"))
		b.until(fmt.Sprintf(`document.querySelector("main h1").textContent === "Search" &&
			!document.querySelector("[aria-busy]") && document.querySelector("#rows").textContent.includes(%q)`, want))
	}
	search("my-own-id", "#/lanes", "orders.found")
	search("my-own-key", "#/dead", "orders.keyed")
	search("orders.found", "#/publish", "my-own-id")
	id := value[string](b, `[...document.querySelectorAll("tbody a")]
		.find((a) => a.title.startsWith("DELAY_2h-")).title`)
	search(id, "#/", "waiting, due in")
	search("not-there", "#/targets", "No match for not-there.")
}

// namesOfButtons: the name of a button in a row contains the object of its action, for a screen reader. The button that
// confirms a cancel has the colour of the row's button.
func namesOfButtons(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers?key=order-1*", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length >= 11`)
	b.until(`document.querySelector('button[aria-label="Cancel timer order-11"]') &&
		document.querySelector('button[aria-label="Fire timer order-11 now"]')`)
	if duplicates := value[int](b, `(() => {
		const names = [...document.querySelectorAll("main button, main input")]
			.map((b) => b.getAttribute("aria-label") ?? b.textContent);
		return names.length - new Set(names).size;
	})()`); duplicates > 7 { // the fields of the search have labels and no names
		t.Errorf("got %d buttons with the name of another button, want at most 7", duplicates)
	}
	red := value[string](b, `getComputedStyle(document.querySelector("td .danger")).color`)
	b.press("main td", "Cancel")
	b.until(`document.querySelector("#do")`)
	if got := value[string](b, `getComputedStyle(document.querySelector("#do")).backgroundColor`); got != red {
		t.Errorf("the button that cancels has the colour %s, want %s", got, red)
	}
}

// unknownView: an address without a view shows an error.
func unknownView(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/foo", 1280, 900, "light")
	b.until(`document.querySelector("h1").textContent === "There is no such view"`)
}

// showBodies shows the bodies of a pending message and of a timer. The log has the name of the token and the stream,
// but no body.
func showBodies(t *testing.T, browser context.Context, c *scene) {
	c.publish("delay.2h.orders.carried", `{"secret":"pending"}`, nats.Header{"X-Own": {"mine"}})
	c.timer("carried", "orders.carried", "2h")
	b := open(t, browser, c.url, "#/pending?target=orders.carried", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 2`)
	b.click(`[...document.querySelectorAll("tbody a")].find((a) => a.title.startsWith("DELAY_2h-"))`)
	b.until(`document.querySelector("main h1").textContent.startsWith("DELAY_2h-")`)
	b.press("main", "Show headers and body")
	b.until(`document.querySelector("pre#body")?.textContent.includes('"secret": "pending"')`)
	b.until(`document.querySelector(".content dl").textContent.includes("X-Ownmine")`)
	b.view("#/timer?key=carried&target=orders.carried")
	b.until(`document.querySelector("main h1").textContent === "carried → orders.carried"`)
	b.press("main", "Show headers and body")
	b.until(`document.querySelector("pre#body")?.textContent.includes('"key": "carried"')`)
	for _, want := range []string{"who=ann", "stream=DELAY_2h", "stream=DELAY_TIMERS"} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("the log does not contain %s:\n%s", want, c.log)
		}
	}
	if strings.Contains(c.log.String(), "secret") {
		t.Error("the log contains the body")
	}
}

// editLetter changes the headers and the body of a dead letter, and resends it. The delivered message has the changed
// headers and body.
func editLetter(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("orders.edited")
	c.publish("delayin.never.orders.edited", `{"id":1}`, nats.Header{"X-Drop": {"gone"}, "X-Keep": {"kept"}})
	b := open(t, browser, c.url, "#/letters?target=orders.edited", 1280, 900, "light")
	b.unlock()
	b.updateUntil(`document.querySelectorAll("tbody tr").length === 1`)
	b.click(`document.querySelector("tbody a")`)
	b.until(`document.querySelector("main h1").textContent.startsWith("Dead letter ")`)
	b.press("main", "Edit and resend")
	b.until(`document.querySelector("dialog textarea[name=headers]")?.value.includes("X-Drop: gone")`)
	if body := value[string](b, `document.querySelector("dialog textarea[name=body]").value`); body != `{"id":1}` {
		t.Errorf("got the body %q in the form, want the body of the letter", body)
	}
	b.run(chromedp.Evaluate(`(() => {
		const set = (name, to) => { document.querySelector("dialog textarea[name=" + name + "]").value = to(
			document.querySelector("dialog textarea[name=" + name + "]").value) };
		set("headers", (text) => text.replace("X-Drop: gone", "X-Set: ü"));
		set("body", () => "changed\nü");
	})()`, nil))
	b.click(`document.querySelector("dialog input[name=now]")`)
	b.press("dialog", "Next: preview")
	b.until(`document.querySelector("#plan")?.textContent === "resend 1 dead letter to orders.edited"`)
	line := value[string](b, `document.querySelector("dialog code").textContent`)
	for _, want := range []string{" --drop-header X-Drop", " --header 'X-Set: ü'", " --body '-'", " --now"} {
		if !strings.Contains(line, want) {
			t.Errorf("got the command %s, want %s in it", line, want)
		}
	}
	if _, err := sub.NextMsg(100 * time.Millisecond); err == nil {
		t.Error("the preview has resent the letter")
	}
	b.press("dialog", "Resend dead letter")
	b.until(`document.querySelector("#done")?.textContent === "1 of 1 dead letter resent"`)
	m, err := sub.NextMsg(natstest.Timeout)
	natstest.NoError(t, err)
	if string(m.Data) != "changed\nü" || m.Header.Get("X-Drop") != "" || m.Header.Get("X-Set") != "ü" ||
		m.Header.Get("X-Keep") != "kept" {
		t.Errorf("got a message with the headers %v and the body %q", m.Header, m.Data)
	}
	b.press("dialog", "Done")
	b.until(`document.querySelector("main .none")?.textContent.startsWith("There is no such dead letter")`)
}

// runsOfSchedule: the view of a schedule has the last runs with their outcomes. The newest run is first.
func runsOfSchedule(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timer?key=beat&target=orders.beat", 1280, 900, "light")
	b.updateUntil(`document.querySelectorAll("tbody tr").length >= 2`)
	row := value[string](b, `document.querySelector("tbody tr").textContent`)
	if !strings.Contains(row, "delivered") || !strings.Contains(row, "ms") {
		t.Errorf("got the newest run %s, want the outcome and the lateness", row)
	}
	rounds := value[[]int](b, `[...document.querySelectorAll("tbody tr")].map((r) => parseInt(r.cells[0].textContent))`)
	if rounds[0] != rounds[1]+1 {
		t.Errorf("got the rounds %v, want the newest round first", rounds)
	}
}
