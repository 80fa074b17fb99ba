package page_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	web "delaybroker/broker/web/page"
	"delaybroker/test/natstest"
)

// TestPage runs all cases with the same two brokers and the same browser. No two cases use one tab.
func TestPage(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	browser := startChromium(t)
	c := startScene(t, web.Access{
		Tokens: []web.Token{{Name: "ann", Secret: token}}, Actions: true, OpenRows: true, Bodies: true,
	})
	cases := map[string]func(t *testing.T, b context.Context, c *scene){
		"live numbers":           liveNumbers,
		"fleet":                  fleet,
		"search for timers":      searchForTimers,
		"rates of targets":       ratesOfTargets,
		"other targets":          otherTargets,
		"cancel a timer":         cancelTimer,
		"schedules":              schedules,
		"without a token":        withoutToken,
		"hostile bodies":         hostileBodies,
		"behind a prefix":        behindPrefix,
		"width and contrast":     widthAndContrast,
		"search by keyboard":     searchByKeyboard,
		"cancel by keyboard":     cancelByKeyboard,
		"pause and resume":       pauseAndResume,
		"resend a letter":        resendLetter,
		"publish form":           publishForm,
		"colour scheme":          colorScheme,
		"screenshots":            screenshots,
		"shell commands":         shellCommands,
		"eight tabs":             eightTabs,
		"act on a selection":     actOnSelection,
		"sort rows":              sortRows,
		"time zone":              timeZone,
		"relative times":         relativeTimes,
		"lost connection":        lostConnection,
		"findings":               findings,
		"open a minute":          openMinute,
		"search from every view": searchFromEveryView,
		"names of buttons":       namesOfButtons,
		"unknown view":           unknownView,
		"edit a letter":          editLetter,
		"runs of a schedule":     runsOfSchedule,
		"show the bodies":        showBodies,
		"letters by reason":      lettersByReason,
		"every attempt":          everyAttempt,
		"next due first":         nextDueFirst,
		"unlock and go on":       unlockAndGoOn,
		"parts as they come":     partsAsTheyCome,
		"text before data":       textBeforeData,
		"error of a forecast":    errorOfForecast,
		"silent connection":      silentConnection,
		"rows first on a phone":  rowsFirstOnAPhone,
	}
	soon := c.subscribe("orders.soon")
	t.Run("case", func(t *testing.T) { // Run returns at the end of all cases
		for name, test := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, browser, c)
			})
		}
	})
	if m, err := soon.NextMsg(max(time.Second, time.Until(c.soonDue)+time.Second)); err == nil {
		t.Errorf("the cancelled timer was delivered: %s", m.Data)
	}
}

// soonDelay is the delay of the timer that cancelTimer cancels.
const soonDelay = 20 * time.Second

// liveNumbers: the numbers of the overview change, and its charts are drawn. The view of the lanes has a table.
func liveNumbers(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "light")
	b.until(`/^[\d\s]+$/.test(document.querySelector("#n-pending").textContent)`)
	b.until(`document.querySelector("#n-dead").textContent !== "–"`)
	before := value[string](b, `document.querySelector("#n-pending").textContent`)
	c.publish("delay.2h.orders.later", "{}", nil)
	b.until(fmt.Sprintf(`document.querySelector("#n-pending").textContent !== %q`, before))
	// The note has the rate of deliveries, and the forecast has due messages.
	b.until(`parseFloat(document.querySelector("#n-pending ~ .note").textContent) > 10`)
	b.until(`parseInt(document.querySelector("#n-minute").textContent) > 0`)
	b.until(`document.querySelectorAll("figure canvas").length === 4`)
	b.until(`/delivered [\d.]+/.test(document.querySelector(".plot").getAttribute("aria-label"))`)
	b.view("#/lanes")
	b.until(`document.querySelector("main table")?.textContent.includes("DELAY_INTAKE")`)
}

// eightTabs opens more tabs of one window than a browser opens connections to a host. A tab gets updates again when it
// becomes visible.
func eightTabs(t *testing.T, browser context.Context, c *scene) {
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

// fleet: the page of one instance shows all instances.
func fleet(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "dark")
	b.until(`["east-", "west-"].every((name, n) =>
		document.querySelectorAll("tbody tr td:first-child")[n]?.textContent.startsWith(name))`)
	b.until(`document.querySelector("#version").textContent.includes("2 instances")`)
	b.until(`/active: works all lanes/.test(document.querySelector("main table").textContent) &&
		/stands by/.test(document.querySelector("main table").textContent)`)
	if text := value[string](b, `document.querySelector("main table").textContent`); strings.Contains(text, "undefined") {
		t.Errorf("got the instances %s, want – for a version that is not known", text)
	}
	b.view("#/lanes")
	b.until(`/(east|west)-/.test(document.querySelector("main table")?.textContent)`)
}

// searchForTimers: a search filters the timers and shows the equivalent command, and the address of the view contains
// the search.
func searchForTimers(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers", 1280, 900, "light")
	b.until(`document.querySelectorAll("tbody tr").length >= 30`)
	b.run(chromedp.SendKeys(`input[name=key]`, "order-1*\r", chromedp.ByQuery))
	b.until(`document.querySelectorAll("tbody tr").length === 11`)
	if line, want := value[string](b, `document.querySelector(".verb code").textContent`),
		"delaybroker timers ls --key 'order-1*' --state pending --order due"; line != want {
		t.Errorf("got the command %q, want %q", line, want)
	}
	if hash := value[string](b, `location.hash`); !strings.Contains(hash, "key=order-1") {
		t.Errorf("got the address %s, want the key of the search in it", hash)
	}
	b.click(`document.querySelector("tbody tr a")`)
	b.until(`document.querySelector("dl")?.textContent.includes("pending")`)
}

// ratesOfTargets: the view of the targets has the rate of deliveries, the refusals and the limit of a target.
func ratesOfTargets(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/targets", 1280, 900, "light")
	cell := func(target string, column int) string {
		return fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].find((r) => r.cells.length === 7 &&
			r.cells[0].textContent === %q && r.cells[1].dataset.label === "Delivered")?.cells[%d].textContent`, target, column)
	}
	for !value[bool](b, `parseFloat(`+cell("orders.paid", 1)+`) > 10`) { // the rate is an average of ten seconds
		time.Sleep(time.Second)
		b.view("#/lanes")
		b.view("#/targets")
		b.until(`document.querySelector("h1")?.textContent === "Targets" && !document.querySelector("[aria-busy]")`)
	}
	if got, want := value[string](b, cell("shop.mail", 4)), "50/s"; got != want {
		t.Errorf("shop.mail has the limit %q, want %q", got, want)
	}
	refused := value[string](b, cell("shop.mail", 2))
	if strings.HasPrefix(refused, "–") || !strings.HasSuffix(refused, " in total") {
		t.Errorf("shop.mail has the refusals %q, want a rate and a total", refused)
	}
	for _, view := range []string{"#/targets", "#/lanes"} { // a small chart has a line from the second step on
		b.view(view)
		for !value[bool](b, `Boolean(document.querySelector("td svg.spark polyline"))`) {
			b.run(chromedp.Evaluate(`document.querySelector("main .age button")?.click()`, nil))
			b.until(`!document.querySelector("[aria-busy]")`)
			time.Sleep(time.Second)
		}
	}
}

// otherTargets: the row of the targets that have no row of their own says so, and has no button that pauses them all.
func otherTargets(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "light")
	b.run(chromedp.Evaluate(`{
		const real = window.fetch, flow = (target) => ({ target, delivered: 1, refused: 0, recent: [] });
		const answer = { time: new Date(), flows: ["orders.paid", "orders.>", "orders.paid.>", ">"].map(flow) };
		window.fetch = (url, options) => (String(url).includes("api/targets")
			? Promise.resolve(new Response(JSON.stringify(answer))) : real(url, options));
	}`, nil))
	b.view("#/targets")
	b.until(`document.querySelectorAll("main tbody tr").length === 4`)
	got := value[[]string](b, `[...document.querySelectorAll("main tbody tr")].map((r) =>
		[r.cells[0], ...r.querySelectorAll("button")].map((e) => e.textContent).join(": "))`)
	want := []string{"orders.paid: Pause", "orders.>others", "orders.paid.>: Pause", ">others"}
	if !slices.Equal(got, want) {
		t.Errorf("got the rows %q, want %q", got, want)
	}
}

// schedules: a row has the times of the rounds after the pending round. The buttons of the view pause and resume a
// schedule.
func schedules(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/schedules?name=night*", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	row := value[string](b, `document.querySelector("tbody tr").textContent`)
	for _, want := range []string{
		"nightly", "reports.run", "cron 0 3 * * * Europe/Berlin", "reports",
	} {
		if !strings.Contains(row, want) {
			t.Errorf("got the row %s, want %q in it", row, want)
		}
	}
	const nextRounds = `[...document.querySelectorAll("main .next")].filter((n) => n.title.includes("03:00:00 CE")).length`
	if n := value[int](b, nextRounds); n != 1 {
		t.Errorf("a row has %d times after the pending round, want 1", n)
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
	b.until(`!document.querySelector("tbody tr").textContent.includes("paused")`)
	b.click(`document.querySelector("tbody tr a")`)
	b.until(`document.querySelector("dl")?.textContent.includes("cron 0 3 * * * Europe/Berlin")`)
	if n := value[int](b, nextRounds); n != 3 {
		t.Errorf("the view of a schedule has %d times after the pending round, want 3", n)
	}
}
