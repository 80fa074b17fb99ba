package page_test

import (
	"context"
	"fmt"
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
