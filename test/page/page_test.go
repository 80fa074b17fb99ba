package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	web "delaybroker/broker/web/page"
	"delaybroker/test/natstest"
)

// TestPage looks at one broker in many tabs at once.
func TestPage(t *testing.T) {
	natstest.Long(t)
	t.Parallel()
	browser := startChromium(t)
	c := play(t, web.Access{
		Tokens: []web.Token{{Name: "ann", Secret: token}}, Actions: true, OpenRows: true, Bodies: true,
	})
	cases := map[string]func(t *testing.T, b context.Context, c *scene){
		"live numbers change":         liveNumbers,
		"one page shows the fleet":    showsFleet,
		"a search finds a timer":      findsTimer,
		"targets show their rates":    showsTargets,
		"a cancel is final":           cancelIsFinal,
		"schedules show what comes":   schedules,
		"nothing acts without token":  nothingWithoutToken,
		"a hostile body is harmless":  hostileBody,
		"it works behind a prefix":    behindPrefix,
		"it fits, light and dark":     fits,
		"the keyboard is enough":      keyboard,
		"the keyboard acts":           keyboardActs,
		"a pause holds, and resumes":  pauses,
		"a letter is resent":          resends,
		"the form shows real lines":   publishForm,
		"light and dark are switched": switchesScheme,
		"screenshots are small":       screenshots,
		"shell lines are real":        shellLines,
		"eight tabs of one window":    manyTabs,
		"a selection is acted on":     actsOnSelection,
		"rows are sorted":             sortsRows,
		"one switch for all times":    switchesZone,
		"times move on":               timesMoveOn,
		"stale numbers look stale":    staleNumbers,
		"doctor's findings are shown": showsFindings,
		"a minute opens its messages": opensMinute,
		"every view can search":       searchesEverywhere,
		"buttons say what they are":   namesButtons,
		"an unknown view says so":     unknownView,
		"a letter is edited":          editsLetter,
		"a schedule has a history":    showsRuns,
		"bodies are shown and logged": showsBodies,
	}
	soon := c.subscribe("orders.soon")
	t.Run("in a tab", func(t *testing.T) { // returns when all have
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, browser, c)
			})
		}
	})
	if m, err := soon.NextMsg(max(time.Second, time.Until(c.soonDue)+time.Second)); err == nil {
		t.Errorf("what was cancelled was delivered: %s", m.Data)
	}
}

// soonAfter is how long after it was set the timer that a case cancels is due.
const soonAfter = 20 * time.Second

func liveNumbers(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "light")
	b.until(`/^[\d\s]+$/.test(document.querySelector("#n-pending").textContent)`)
	b.until(`document.querySelector("#n-dead").textContent !== "–"`)
	before := value[string](b, `document.querySelector("#n-pending").textContent`)
	c.publish("delay.2h.orders.later", "{}", nil)
	b.until(fmt.Sprintf(`document.querySelector("#n-pending").textContent !== %q`, before))
	// Deliveries are counted, and the forecast sees what is due.
	b.until(`parseFloat(document.querySelector("#n-pending ~ .note").textContent) > 10`)
	b.until(`parseInt(document.querySelector("#n-minute").textContent) > 0`)
	b.until(`document.querySelectorAll("figure canvas").length === 4`)
	b.until(`/delivered [\d.]+/.test(document.querySelector(".plot").getAttribute("aria-label"))`)
	b.view("#/lanes")
	b.until(`document.querySelector("main table")?.textContent.includes("DELAY_INTAKE")`)
}

// manyTabs opens more tabs than a browser makes connections to a host. The first one is live again when it is in front.
func manyTabs(t *testing.T, browser context.Context, c *scene) {
	id, window := newWindow(t, browser)
	first := openIn(t, browser, id, c.url, "#/", 1280, 900, "light")
	for range 7 {
		openIn(t, browser, newTab(t, browser, window), c.url, "#/", 1280, 900, "light")
	}
	before := value[string](first, `document.querySelector("#n-pending").textContent`)
	first.run(page.BringToFront())
	c.publish("delay.2h.orders.later", "{}", nil)
	first.until(fmt.Sprintf(`document.querySelector("#n-pending").textContent !== %q`, before))
}

func showsFleet(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "dark")
	b.until(`["east-", "west-"].every((name, n) =>
		document.querySelectorAll("tbody tr td:first-child")[n]?.textContent.startsWith(name))`)
	b.until(`document.querySelector("#version").textContent.includes("2 instances")`)
	b.view("#/lanes")
	b.until(`["east", "west"].every((name) => document.querySelector("main table")?.textContent.includes(name))`)
}

func findsTimer(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers", 1280, 900, "light")
	b.until(`document.querySelectorAll("tbody tr").length >= 30`)
	b.run(chromedp.SendKeys(`input[name=key]`, "order-1*\r", chromedp.ByQuery))
	b.until(`document.querySelectorAll("tbody tr").length === 11`)
	if line, want := value[string](b, `document.querySelector(".verb code").textContent`),
		"delaybroker timers ls --key 'order-1*' --state pending"; line != want {
		t.Errorf("it shows %q, want %q", line, want)
	}
	if hash := value[string](b, `location.hash`); !strings.Contains(hash, "key=order-1") {
		t.Errorf("the search is not in the address: %s", hash)
	}
	b.click(`document.querySelector("tbody tr a")`)
	b.until(`document.querySelector("dl")?.textContent.includes("pending")`)
}

// showsTargets waits until the fleet has said what it delivers to each target.
func showsTargets(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/targets?show=delivered", 1280, 900, "light")
	cell := func(target string, column int) string {
		return fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].find((r) => r.cells.length === 6 &&
			r.cells[0].textContent === %q && r.cells[1].dataset.label === "Delivered")?.cells[%d].textContent`, target, column)
	}
	for !value[bool](b, `parseFloat(`+cell("orders.paid", 1)+`) > 10`) { // of the last ten seconds
		time.Sleep(time.Second)
		b.view("#/lanes")
		b.view("#/targets?show=delivered")
		b.until(`document.querySelector("h1")?.textContent === "Targets" && !document.querySelector("[aria-busy]")`)
	}
	if got, want := value[string](b, cell("shop.mail", 3)), "50/s"; got != want {
		t.Errorf("shop.mail has the rate %q, want %q", got, want)
	}
	refused := value[string](b, cell("shop.mail", 2))
	if strings.HasPrefix(refused, "–") || !strings.HasSuffix(refused, " in total") {
		t.Errorf("shop.mail refused %q", refused)
	}
}

// A timer that is cancelled on the page is cancelled for good: TestPage waits until it would have been due.
func cancelIsFinal(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers", 1280, 900, "light")
	b.unlock()
	c.timer("cancelled", "orders.soon", soonAfter.String())
	c.soonDue = time.Now().Add(soonAfter)
	b.view("#/timer?key=cancelled&target=orders.soon")
	b.press("main", "Cancel")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("cancel 1 timer: cancelled to orders.soon")`)
	if got := value[string](b, `document.querySelector("dialog h2").textContent`); got != "Cancel timer cancelled?" {
		t.Errorf("the dialog asks %q", got)
	}
	b.press("dialog", "Cancel timer")
	b.until(`document.querySelector("#done")?.textContent === "cancelled: the timer will not be delivered"`)
	b.press("dialog", "Done")
	b.until(`document.querySelector("dl")?.textContent.includes("cancelled")`)
	for _, want := range []string{
		"who=ann", "verb=cancel", "timers cancel --generation ", " cancelled orders.soon", "the timer will not be delivered",
	} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, c.log)
		}
	}
}

// schedules shows what recurs, with the times behind the pending round, and pauses and resumes one.
func schedules(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/schedules?key=night*", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	row := value[string](b, `document.querySelector("tbody tr").textContent`)
	for _, want := range []string{
		"nightly", "reports.run", "cron 0 3 * * * Europe/Berlin", "set reports",
	} {
		if !strings.Contains(row, want) {
			t.Errorf("the row shows no %q: %s", want, row)
		}
	}
	if n := value[int](b, `[...document.querySelectorAll("tbody .next")]
		.filter((n) => n.title.includes("03:00:00 CE")).length`); n != 3 {
		t.Errorf("%d times behind the pending round are shown, want 3", n)
	}
	b.press("main td", "Pause")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("pause 1 timer: nightly to reports.run, due ")`)
	b.press("dialog", "Pause schedule")
	b.until(`document.querySelector("#done")?.textContent === "paused: the timer does not fire until it is resumed"`)
	b.press("dialog", "Done")
	b.until(`document.querySelector("tbody tr").textContent.includes("paused")`)
	b.press("main td", "Resume")
	b.until(`document.querySelector("#plan")?.textContent === "resume 1 timer: nightly to reports.run, paused"`)
	b.press("dialog", "Resume schedule")
	b.until(`document.querySelector("#done")?.textContent.startsWith("resumed: due ")`)
	b.press("dialog", "Done")
	b.until(`!document.querySelector("tbody tr").textContent.includes("paused")`) // the row is shown anew, with its link
	b.click(`document.querySelector("tbody tr a")`)
	b.until(`document.querySelector("dl")?.textContent.includes("cron 0 3 * * * Europe/Berlin, round 1")`)
}

func nothingWithoutToken(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers?key=order-2*", 1280, 900, "light")
	b.mayBeRefused()
	b.until(`document.querySelectorAll("tbody tr").length > 5`)
	const unlocked = `document.querySelectorAll("main td button:not(.locked), main .bulk, main td.pick").length`
	if n := value[int](b, unlocked); n != 0 {
		t.Errorf("there are %d buttons to act", n)
	}
	b.press("main td", "Cancel") // which asks for the token
	b.until(`document.querySelector("dialog input[name=token]")`)
	b.press("dialog", "Close")
	for _, test := range []struct{ header, path, body string }{
		{"", "plan", `{"verb":"cancel","key":"order-2","target":"orders.remind"}`},
		{"Bearer ", "plan", `{"verb":"cancel","key":"order-2","target":"orders.remind"}`},
		{"Bearer wrong-wrong-wrong-wrong", "plan", `{"verb":"cancel","key":"order-2","target":"orders.remind"}`},
		{"", "act", `{"ticket":"e30.AA"}`},
	} {
		code := value[int](b, fmt.Sprintf(`(async () => (await fetch("api/%s", {method: "POST",
			headers: {"Content-Type": "application/json", "Authorization": %q}, body: %q})).status)()`,
			test.path, test.header, test.body))
		if code != http.StatusUnauthorized {
			t.Errorf("%s with %q: got %d, want 401", test.path, test.header, code)
		}
	}
	b.press("header", "Unlock")
	b.run(chromedp.SendKeys(`dialog input[name=token]`, "not the token at all\r", chromedp.ByQuery))
	b.until(`document.querySelector("dialog .bad")?.textContent === "wrong token"`)
	b.press("dialog", "Close")
	if n := value[int](b, unlocked); n != 0 {
		t.Errorf("after a wrong token there are %d buttons to act", n)
	}
}

func hostileBody(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/letters?target=hostile.>", 400, 800, "light")
	b.run(chromedp.Evaluate(`window.boom = () => { window.boomed = true }`, nil))
	b.until(`document.querySelectorAll("tbody tr").length === 3`)
	for n := range 3 {
		b.view("#/letters?target=hostile.>")
		b.until(`document.querySelectorAll("tbody tr").length === 3`)
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("tbody tr a")[%d].click()`, n), nil))
		b.press("main", "Show headers and body")
		b.until(`document.querySelector("pre#body")`)
		b.until(`document.querySelector("main").textContent.includes("onerror")`)
		if value[bool](b, `window.boomed === true || document.querySelector("main img, main script") !== null`) {
			t.Errorf("body %d became HTML", n)
		}
		if n := value[int](b, `document.querySelector("pre#body").textContent.length`); n > 400_000 {
			t.Errorf("%d characters of a body are shown", n)
		}
		b.wantFits(fmt.Sprint("hostile body ", n))
	}
	b.press("main", "Hex")
	b.until(`document.querySelector("pre#body").textContent.startsWith("00000000  ")`)
	// A script of a stranger's would not run, even if one got in. This is a line in the console.
	b.mayBeRefused()
	if !value[bool](b, `(() => {
		try { document.createElement("div").innerHTML = "<b>x</b>"; return false } catch { return true }
	})()`) {
		t.Error("the browser lets text become HTML")
	}
}

func behindPrefix(t *testing.T, browser context.Context, c *scene) {
	to, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.StripPrefix("/tools/delay", proxy))
	t.Cleanup(front.Close)
	b := open(t, browser, front.URL+"/tools/delay/", "#/pending?target=orders.>", 1280, 900, "light")
	b.until(`document.querySelectorAll("tbody tr").length >= 50`)
	b.unlock()
	b.view("#/timers?key=order-3")
	b.press("main td", "Move")
	b.until(`document.querySelector("dialog input[name=by]")`)
	b.run(chromedp.SendKeys(`dialog input[name=by]`, "+5m\r", chromedp.ByQuery))
	b.until(`document.querySelector("#plan")?.textContent.startsWith("move 1 timer: order-3")`)
	b.press("dialog", "Move timer")
	b.until(`document.querySelector("#done")?.textContent.startsWith("moved: due ")`)
}

// views are all of them, with rows.
var views = []string{
	"#/", "#/pending", "#/where?id=DELAY_1h-1", "#/timers", "#/schedules", "#/timer?key=order-5&target=orders.remind",
	"#/retrying", "#/dead", "#/letters?code=bad_time", "#/letter?number=1", "#/targets?show=delivered",
	"#/targets?show=refusing", "#/targets?show=paused", "#/lanes", "#/publish", "#/find?find=order-5", "#/nowhere",
}

// wantFits wants nothing to be wider than the window.
func (b *tab) wantFits(what string) {
	b.t.Helper()
	wide := value[string](b, `(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return "";
		return [...document.querySelectorAll("main *")].filter((n) => n.getBoundingClientRect().right > width + 1)
			.map((n) => n.tagName + "." + n.className).slice(0, 5).join(" ") || "something";
	})()`)
	if wide != "" {
		b.t.Errorf("%s is wider than the window: %s", what, wide)
	}
}

func fits(t *testing.T, browser context.Context, c *scene) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{375, 1280} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				t.Parallel()
				b := open(t, browser, c.url, "", width, 850, scheme)
				b.unlock()
				for _, view := range views {
					b.view(view)
					b.until(`document.querySelector("h1") && !document.querySelector("[aria-busy]")`)
					b.wantFits(view)
					if bad := value[string](b, contrasts); bad != "" {
						t.Errorf("%s: the contrast is too low of %s", view, bad)
					}
				}
			})
		}
	}
}

// contrasts computes that of every text with its ground, as WCAG does, and returns those below 4.5.
const contrasts = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
		.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (n) => {
		for (; n; n = n.parentElement) {
			const c = parse(getComputedStyle(n).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const bad = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const n = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || n.closest("[hidden], noscript, script, .skip")) continue;
		if (n.getClientRects().length === 0) continue;
		const [a, b] = [light(parse(getComputedStyle(n).color)), light(ground(n))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const what = n.tagName + "." + n.className + " " + walk.currentNode.data.slice(0, 20);
		if (ratio < 4.5) bad.add(what + " " + ratio.toFixed(2));
	}
	return [...bad].join("; ");
})()`

// keyboard goes to a view, searches, and opens what was found, without a mouse. What is pressed has a name and shows
// that it is the one.
func keyboard(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "light")
	focus := b.tabTo
	focus(`nav a[href="#/timers"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("input[name=key]")`)
	focus(`input[name=key]`)
	b.run(chromedp.KeyEvent("order-7"), chromedp.KeyEvent("\r"))
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	focus(`tbody a`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("dl")?.textContent.includes("order-7")`)
	nameless := value[int](b, `[...document.querySelectorAll("button, input, select, a")].filter((n) =>
		!(n.textContent.trim() || n.getAttribute("aria-label") || n.labels?.length)).length`)
	if nameless > 0 {
		t.Errorf("%d things to press or fill in have no name", nameless)
	}
}

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(what string) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent("\t"))
		if value[bool](b, `document.activeElement.matches(`+strconv.Quote(what)+`)`) {
			if value[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				b.t.Errorf("%s does not show that it has the focus", what)
			}
			return
		}
	}
	b.t.Fatalf("Tab never comes to %s", what)
}

// keyboardActs gives the token, cancels a timer and puts the dialog away, without a mouse. The way back is short: the
// focus is at the rows. On a narrow screen, the dialogs fit.
func keyboardActs(t *testing.T, browser context.Context, c *scene) {
	c.timer("typed", "orders.typed", "2h")
	b := open(t, browser, c.url, "#/timers?key=typed", 375, 800, "dark")
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	looks := func(what string) {
		t.Helper()
		b.wantFits(what)
		if bad := value[string](b, contrasts); bad != "" {
			t.Errorf("%s: the contrast is too low of %s", what, bad)
		}
	}
	b.tabTo("#token")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.activeElement.matches("dialog input[name=token]")`)
	looks("the dialog for the token")
	b.run(chromedp.KeyEvent(token), chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("td.act button.danger")`)
	b.tabTo("td.act button.danger")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#plan")?.textContent.startsWith("cancel 1 timer: typed") &&
		document.activeElement.textContent === "Keep"`)
	looks("the plan of an action")
	b.run(chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector("dialog").open && document.activeElement.matches("td.act button.danger")`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#plan")`)
	b.tabTo("#do")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#done")?.textContent === "cancelled: the timer will not be delivered"`)
	b.until(`document.querySelector("main .none")`) // it is no longer pending
	b.until(`document.activeElement.matches("dialog .foot button")`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`!document.querySelector("dialog").open && document.activeElement.matches("main h1")`)
}

func pauses(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("held.back")
	b := open(t, browser, c.url, "#/targets?show=paused", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelector("input[name=pattern]")`)
	b.run(chromedp.SendKeys(`input[name=pattern]`, "held.>", chromedp.ByQuery))
	b.press("main form", "Pause target")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("pause held.>: ")`)
	if text := value[string](b, `document.querySelector("dialog").textContent`); strings.Contains(text, "null") {
		t.Errorf("the dialog shows what is not there: %s", text)
	}
	b.press("dialog", "Pause target")
	b.until(`document.querySelector("#done")?.textContent.includes("held.> is paused; confirmed by 2 of 2 instances")`)
	b.press("dialog", "Done")
	c.publish("delay.1s.held.back", "x", nil)
	if m, err := sub.NextMsg(2500 * time.Millisecond); err == nil {
		t.Errorf("it was delivered: %s", m.Data)
	}
	b.press("main td", "Resume")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("resume held.>: 1 message ")`)
	b.press("dialog", "Resume target")
	b.until(`document.querySelector("#done")?.textContent.includes("resumed")`)
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Errorf("after the resume: %v", err)
	}
}

func resends(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("rescued")
	b := open(t, browser, c.url, "#/letters?code=undelivered&target=shop.sms", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 12`)
	b.press("main td", "Resend")
	b.until(`document.querySelector("dialog input[name=to]")`)
	b.run(chromedp.SendKeys(`dialog input[name=to]`, "rescued\r", chromedp.ByQuery))
	b.until(`document.querySelector("#plan")?.textContent === "resend 1 dead letter"`)
	b.press("dialog", "Resend dead letter")
	b.until(`document.querySelector("#done")?.textContent === "1 of 1 dead letter resent"`)
	b.press("dialog", "Done")
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Error(err)
	}
	b.until(`document.querySelectorAll("tbody tr").length === 11`)
	b.press("main p", "Remove")
	b.until(`document.querySelector("#plan")?.textContent === "remove 11 dead letters"`)
	b.press("dialog", "Remove 11 dead letters")
	b.until(`document.querySelector("#done")?.textContent === "11 of 11 dead letters removed"`)
}

// publishForm publishes what the form shows for the NATS CLI and for Go, by the subject and body in them.
func publishForm(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("form.filled")
	b := open(t, browser, c.url, "#/publish", 1280, 900, "light")
	fill := func(name, text string) {
		t.Helper()
		b.run(chromedp.SetValue(`input[name=`+name+`]`, text, chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector("form.search").dispatchEvent(new Event("input"))`, nil))
	}
	for name, text := range map[string]string{"target": "form.filled", "when": "1s500ms", "body": `{"who":"it's"}`} {
		fill(name, text)
	}
	b.until(`document.querySelectorAll("#lines .line").length === 6`)
	lines := value[[]string](b, `[...document.querySelectorAll("#lines .line code")].map((c) => c.textContent)`)
	for n, want := range []string{
		`delaybroker pub 'form.filled' '{"who":"it'\''s"}' --in 1s500ms`,
		`nats pub -J delayin.1s500ms.form.filled '{"who":"it'\''s"}'`,
		"js.Publish(ctx, \"delayin.1s500ms.form.filled\", []byte(`{\"who\":\"it's\"}`))",
		`await js.publish("delayin.1s500ms.form.filled", '{"who":"it\'s"}');`,
	} {
		if lines[n] != want {
			t.Errorf("got %s, want %s", lines[n], want)
		}
	}
	c.publish("delayin.1s500ms.form.filled", "{}", nil)
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Errorf("the subject of the form: %v", err)
	}
	fill("when", "tomorrow")
	b.until(`document.querySelector("#lines .bad")?.textContent.startsWith("Want ")`)
}

func switchesScheme(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "dark")
	ground := func() string { return value[string](b, `getComputedStyle(document.body).backgroundColor`) }
	dark := ground()
	b.run(chromedp.Click("#theme", chromedp.ByQuery))
	light := ground()
	if light == dark {
		t.Errorf("the ground stays %s", dark)
	}
	b.run(chromedp.Reload())
	b.until(`document.querySelector("#ready").textContent === "ready"`)
	if got := ground(); got != light {
		t.Errorf("after a reload it is %s, want %s", got, light)
	}
}

// screenshots makes the pictures of the documents: go test ./test/page -run TestPage -page.shots ../../broker/web/page
func screenshots(t *testing.T, browser context.Context, c *scene) {
	for _, shot := range []struct {
		name, hash, scheme string
		width, height      int64
		unlocked           bool
	}{
		{"overview-light", "#/", "light", 1180, 1060, false},
		{"overview-dark", "#/", "dark", 1180, 1060, false},
		{"timers-narrow-dark", "#/timers?key=order-1*", "dark", 400, 860, true},
	} {
		b := open(t, browser, c.url, shot.hash, shot.width, shot.height, shot.scheme)
		if shot.unlocked {
			b.unlock()
		}
		if shot.hash == "#/" {
			b.until(`parseFloat(document.querySelector("#n-pending ~ .note").textContent) > 10`)
			b.until(`document.querySelectorAll("figure canvas").length === 4`)
			b.until(`document.querySelector("#n-dead").textContent !== "–"`)
		}
		b.until(`!document.querySelector("[aria-busy]")`)
		var png []byte
		take := chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
			return err
		})
		b.run(chromedp.Evaluate(`document.activeElement.blur()`, nil), take)
		if len(png) < 10_000 || len(png) > 200<<10 {
			t.Errorf("%s has %d bytes, want 10 to 200 KB", shot.name, len(png))
		}
		if *shots != "" {
			if err := os.WriteFile(filepath.Join(*shots, shot.name+".png"), png, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}
